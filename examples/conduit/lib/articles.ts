// Articles and comments as the API shows them, and the queries that read them.
import { randomBytes } from 'node:crypto';
import { HttpError, type Int } from 'gatefold';
import type { PendingQuery, Row } from 'postgres';
import { sql } from './database.ts';
import type { Article, ArticleQuery, ArticleSummary, Articles, Comment, OneArticle, Page, User } from './types.ts';
import { authorOf } from './users.ts';

type Viewer = User | undefined;
type Condition = PendingQuery<Row[]>;

const LARGEST_PAGE = 100;

function summaryOf(viewer: Viewer) {
  return sql`a.slug, a.title, a.description, a.tag_list, a.created_at, a.updated_at,
    (select count(*)::integer from favorites where article = a.id) as favorites_count,
    exists (select from favorites where article = a.id and reader = ${viewer?.id ?? null}) as favorited,
    ${authorOf(viewer)}`;
}

/** The articles that fulfil a condition on `a`, the article, and `u`, its author; the newest first. */
async function listArticles(condition: Condition, { limit = 20, offset = 0 }: Page, viewer: Viewer): Promise<Articles> {
  const chosen = sql`from articles a join users u on u.id = a.author where ${condition}`;
  const [articles, [{ count }]] = await Promise.all([
    sql<ArticleSummary[]>`select ${summaryOf(viewer)} ${chosen}
      order by a.created_at desc, a.id desc limit ${Math.min(limit, LARGEST_PAGE)} offset ${offset}`,
    sql<[{ count: number }]>`select count(*)::integer ${chosen}`,
  ]);
  return { articles, articlesCount: count };
}

export function findArticles({ tag, author, favorited, ...page }: ArticleQuery, viewer: Viewer): Promise<Articles> {
  const condition = sql`true
    ${tag === undefined ? sql`` : sql`and a.tag_list @> array[${tag}]`}
    ${author === undefined ? sql`` : sql`and u.username = ${author}`}
    ${
      favorited === undefined
        ? sql``
        : sql`and a.id in (
      select article from favorites join users on users.id = reader where users.username = ${favorited})`
    }`;
  return listArticles(condition, page, viewer);
}

/** The articles of the authors whom a user follows. */
export function findFeed(page: Page, user: User): Promise<Articles> {
  return listArticles(sql`a.author in (select followed from follows where follower = ${user.id})`, page, user);
}

export async function findArticle(slug: string, viewer: Viewer): Promise<OneArticle> {
  const [article] = await sql<Article[]>`select ${summaryOf(viewer)}, a.body
    from articles a join users u on u.id = a.author where a.slug = ${slug}`;
  if (article === undefined) throw new HttpError(404, 'ARTICLE_NOT_FOUND', 'there is no such article');
  return { article };
}

/** @returns the words of a title in lower case, with a random end when an article or a route has that slug already */
export async function findFreeSlug(title: string): Promise<string> {
  const words = title.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ['article'];
  const slug = words.join('-').slice(0, 100);
  const taken = await sql`select from articles where slug = ${slug}`;
  return taken.length === 0 && slug !== 'feed' ? slug : `${slug}-${randomBytes(4).toString('hex')}`;
}

/** The comments of an article that fulfil a condition on `c`; the oldest first. */
export function findComments(condition: Condition, viewer: Viewer): Promise<Comment[]> {
  return sql<Comment[]>`select c.id, c.created_at, c.updated_at, c.body, ${authorOf(viewer)}
    from comments c join users u on u.id = c.author where ${condition} order by c.id`;
}

/** Refuses an article or comment that does not exist, or that belongs to another user. */
export function refuseForeign<Row extends { author: Int }>(
  row: Row | undefined,
  user: User,
  what: string,
): asserts row is Row {
  if (row === undefined) throw new HttpError(404, 'NOT_FOUND', `there is no such ${what}`);
  if (row.author !== user.id) throw new HttpError(403, 'FOREIGN', `this ${what} belongs to somebody else`);
}
