// The types of the bookshop's controllers.
import type { DateOnly, Email, Int, Uri } from 'gatefold';

export type Genre = 'novel' | 'poetry' | 'science' | 'history' | 'children';

export interface Author {
  /**
   * @minLength 1
   * @maxLength 120
   */
  name: string;
  born?: DateOnly;
  site?: Uri;
}

interface Paper {
  kind: 'paper';
  binding: 'hard' | 'soft';
  /** @exclusiveMinimum 0 */
  grams?: Int;
}

interface Ebook {
  kind: 'ebook';
  /** @minimum 0 */
  bytes: Int;
  drm?: boolean;
}

export interface NewBook {
  /**
   * As printed on the title page.
   * @minLength 1
   * @maxLength 200
   */
  title: string;
  /**
   * @pattern ^97[89]\d{10}$
   * @example "9780140449136"
   */
  isbn: string;
  genre: Genre;
  /**
   * In euro.
   * @minimum 0
   */
  price: number;
  /**
   * @minItems 1
   * @maxItems 10
   */
  authors: Author[];
  /** @maxItems 20 */
  tags?: string[];
  /** @default true */
  inPrint?: boolean;
  format?: Paper | Ebook;
  subtitle?: string | null;
}

export interface Book extends NewBook {
  id: Int;
  added: Date;
  /** Copies on the shelf. */
  stock: Int;
  similar?: Book[];
}

export interface Item {
  book: Int;
  /**
   * @minimum 1
   * @maximum 99
   */
  count: Int;
  note?: string;
}

export interface NewOrder {
  customer: Email;
  /** @minItems 1 */
  items: Item[];
  gift?: boolean;
}

export interface Order extends NewOrder {
  id: Int;
  state: 'open' | 'paid' | 'sent';
  total: number;
  placed: Date;
}

export interface Page<T> {
  items: T[];
  total: Int;
  next: Int | null;
}
