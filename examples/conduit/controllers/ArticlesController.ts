// /api/articles: articles, their comments, and who likes them.
import { type ControllerParams, HttpError, type Int, type Operations, Reply } from 'gatefold';
import { findArticle, findArticles, findComments, findFeed, findFreeSlug, refuseForeign } from '../lib/articles.ts';
import { refuseTaken, sql } from '../lib/database.ts';
import type {
  ArticleChange,
  ArticleQuery,
  Articles,
  Comment,
  NewArticle,
  NewComment,
  OneArticle,
  Page,
  User,
} from '../lib/types.ts';

type Signed = ControllerParams<{ user: User }>;
type Viewed = ControllerParams<{ user?: User }>;
type ViewedArticle = ControllerParams<{ path: { slug: string }; user?: User }>;
type OwnArticle = ControllerParams<{ path: { slug: string }; user: User }>;
type OwnComment = ControllerParams<{ path: { slug: string; id: Int }; user: User }>;

export default class ArticlesController {
  static operations: Operations<ArticlesController> = {
    GET: { access: 'anyone' },
    POST: { status: 201 },
    'GET {slug}': { access: 'anyone' },
    'GET {slug}/comments': { access: 'anyone' },
  };

  GET(query: ArticleQuery, { user }: Viewed): Promise<Articles> {
    return findArticles(query, user);
  }

  'GET feed'(page: Page, { user }: Signed): Promise<Articles> {
    return findFeed(page, user);
  }

  async POST({ article }: { article: NewArticle }, { user }: Signed): Promise<OneArticle> {
    const slug = await findFreeSlug(article.title);
    const tagList = [...new Set(article.tagList)].sort();
    await sql`insert into articles ${sql({ ...article, tagList, slug, author: user.id })}`.catch(refuseTaken);
    return findArticle(slug, user);
  }

  'GET {slug}'(_: undefined, { path, user }: ViewedArticle): Promise<OneArticle> {
    return findArticle(path.slug, user);
  }

  async 'PUT {slug}'({ article }: { article: ArticleChange }, { path, user }: OwnArticle): Promise<OneArticle> {
    const [before] = await sql<{ id: Int; author: Int; title: string }[]>`
      select id, author, title from articles where slug = ${path.slug}`;
    refuseForeign(before, user, 'article');
    const { title = before.title } = article;
    const slug = title === before.title ? path.slug : await findFreeSlug(title);
    const row = { ...article, slug, updatedAt: new Date() };
    await sql`update articles set ${sql(row)} where id = ${before.id}`.catch(refuseTaken);
    return findArticle(slug, user);
  }

  async 'DELETE {slug}'(_: undefined, { path, user }: OwnArticle): Promise<Reply<204>> {
    const [article] = await sql<{ author: Int }[]>`select author from articles where slug = ${path.slug}`;
    refuseForeign(article, user, 'article');
    await sql`delete from articles where slug = ${path.slug} and author = ${user.id}`;
    return new Reply(204);
  }

  async 'POST {slug}/favorite'(_: undefined, { path, user }: OwnArticle): Promise<OneArticle> {
    await sql`insert into favorites (article, reader)
      select id, ${user.id} from articles where slug = ${path.slug} on conflict do nothing`;
    return findArticle(path.slug, user);
  }

  async 'DELETE {slug}/favorite'(_: undefined, { path, user }: OwnArticle): Promise<OneArticle> {
    await sql`delete from favorites
      where reader = ${user.id} and article = (select id from articles where slug = ${path.slug})`;
    return findArticle(path.slug, user);
  }

  async 'GET {slug}/comments'(_: undefined, { path, user }: ViewedArticle): Promise<{ comments: Comment[] }> {
    await findArticle(path.slug, user);
    return { comments: await findComments(sql`c.article = (select id from articles where slug = ${path.slug})`, user) };
  }

  async 'POST {slug}/comments'(
    { comment: { body } }: { comment: NewComment },
    { path, user }: OwnArticle,
  ): Promise<{ comment: Comment }> {
    const [row] = await sql<{ id: Int }[]>`insert into comments (article, author, body)
      select id, ${user.id}, ${body} from articles where slug = ${path.slug} returning id`;
    const [comment] = await findComments(sql`c.id = ${row?.id ?? null}`, user);
    if (comment === undefined) throw new HttpError(404, 'ARTICLE_NOT_FOUND', 'there is no such article');
    return { comment };
  }

  async 'DELETE {slug}/comments/{id}'(_: undefined, { path, user }: OwnComment): Promise<Reply<204>> {
    const [comment] = await sql<{ author: Int }[]>`select c.author from comments c join articles a on a.id = c.article
      where a.slug = ${path.slug} and c.id = ${path.id}::bigint`;
    refuseForeign(comment, user, 'comment');
    await sql`delete from comments where id = ${path.id}`;
    return new Reply(204);
  }
}
