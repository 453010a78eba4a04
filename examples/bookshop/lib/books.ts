// Books as the API shows them and as the table keeps them.
import { type DateOnly, HttpError, type Int } from 'gatefold';
import { database } from './database.ts';

export interface NewBook {
  /** @minLength 1
   *  @maxLength 200 */
  title: string;
  /** First name and last name: `Jane Austen`.
   *  @minLength 1 */
  author: string;
  /** The 13 digits of the ISBN, without dashes.
   *  @pattern ^97[89]\d{10}$ */
  isbn: string;
  /** @minimum 0 */
  price: number;
  currency: 'EUR' | 'USD' | 'GBP';
  /** @minimum 1 */
  pages: Int;
  /** The day of the first edition. */
  publishedOn: DateOnly;
  inPrint: boolean;
  /** A code of two letters (ISO 639-1), such as `en`.
   *  @pattern ^[a-z]{2}$ */
  language: string;
  /** @maxItems 10
   *  @uniqueItems */
  tags: string[];
}

export interface Book extends NewBook {
  id: Int;
  /** Grows by one with each change. */
  version: Int;
}

export type Row = Record<string, string | number | null>;

export const COLUMNS = [
  'title',
  'author',
  'isbn',
  'price',
  'currency',
  'pages',
  'publishedOn',
  'inPrint',
  'language',
  'tags',
] as const;

export function toBook({ cover, coverType, inPrint, tags, ...row }: Row): Book {
  return { ...row, inPrint: inPrint === 1, tags: JSON.parse(String(tags)) } as Book;
}

export function toRow(book: Partial<NewBook>): Row {
  const { inPrint, tags, ...row } = book;
  return {
    ...row,
    ...(inPrint === undefined ? {} : { inPrint: Number(inPrint) }),
    ...(tags === undefined ? {} : { tags: JSON.stringify(tags) }),
  };
}

export function findBook(id: number): Book {
  const row = database.prepare('SELECT * FROM book WHERE id = ?').get(id) as Row | undefined;
  if (row === undefined) throw new HttpError(404, 'BOOK_NOT_FOUND', `There is no book with the id ${id}`);
  return toBook(row);
}

export const etagOf = ({ version }: Book): string => `"${version}"`;
