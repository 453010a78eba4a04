// The objects of the specification. Gatefold reads these types: each constraint is checked in requests, and is in the
// OpenAPI document.
import type { Email, Int } from 'gatefold';

/** The calling user, with the columns of the database. */
export interface User {
  id: Int;
  email: string;
  username: string;
  bio: string | null;
  image: string | null;
}

export interface Login {
  email: string;
  password: string;
}

export interface NewUser {
  /** @minLength 1
   *  @maxLength 100 */
  username: string;
  /** @maxLength 250 */
  email: Email;
  /** @minLength 1
   *  @maxLength 1000 */
  password: string;
}

export interface UserChange extends Partial<NewUser> {
  bio?: string | null;
  image?: string | null;
}

export interface OneUser {
  user: Omit<User, 'id'> & { token: string };
}

export interface OneProfile {
  profile: Profile;
}

export interface Profile {
  username: string;
  bio: string | null;
  image: string | null;
  following: boolean;
}

export interface NewArticle {
  /** @minLength 1
   *  @maxLength 1000 */
  title: string;
  /** @minLength 1 */
  description: string;
  /** @minLength 1 */
  body: string;
  /** @maxItems 100 */
  tagList?: Tag[];
}

/** @minLength 1
 *  @maxLength 100 */
type Tag = string;

export interface ArticleSummary {
  slug: string;
  title: string;
  description: string;
  tagList: string[];
  createdAt: Date;
  updatedAt: Date;
  favorited: boolean;
  favoritesCount: Int;
  author: Profile;
}

export interface Article extends ArticleSummary {
  body: string;
}

export interface OneArticle {
  article: Article;
}

export interface Articles {
  articles: ArticleSummary[];
  articlesCount: Int;
}

export interface Page {
  /** @minimum 1
   *  @default 20 */
  limit?: Int;
  /** @minimum 0
   *  @default 0 */
  offset?: Int;
}

export interface ArticleQuery extends Page {
  tag?: string;
  author?: string;
  favorited?: string;
}

export type ArticleChange = Partial<Omit<NewArticle, 'tagList'>>;

export interface NewComment {
  /** @minLength 1 */
  body: string;
}

export interface Comment extends NewComment {
  id: Int;
  createdAt: Date;
  updatedAt: Date;
  author: Profile;
}
