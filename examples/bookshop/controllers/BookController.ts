// /api/book: a list with pages, filter and sort; one book by its id, with its version as ETag; reviews below it; its
// cover.
import { Readable } from 'node:stream';
import { type ControllerParams, HttpError, type Int, ifMatch, type Operations, Reply } from 'gatefold';
import { type Book, COLUMNS, etagOf, findBook, type NewBook, type Row, toBook, toRow } from '../lib/books.ts';
import { database, ShopController } from '../lib/database.ts';

interface BookQuery {
  /** Begins at 1, the default.
   *  @minimum 1 */
  page?: Int;
  /** Books on a page, 20 by default.
   *  @minimum 1
   *  @maximum 100 */
  size?: Int;
  /** A part of the title, in any case. */
  title?: string;
  /** A part of the author's name, in any case. */
  author?: string;
  inPrint?: boolean;
  /** Compared with the number of the price, whatever its currency.
   *  @minimum 0 */
  maxPrice?: number;
  /** By the title, if left out. Prices are compared as numbers, whatever their currency. */
  sort?: 'title' | 'price' | 'publishedOn';
  descending?: boolean;
}

interface BookChange extends Partial<NewBook> {
  /** The version that `get_book` returned, on which the change is based. A tool always sends it: it has no If-Match. */
  version?: Int;
}

interface NewReview {
  /** 5 is the best.
   *  @minimum 1
   *  @maximum 5 */
  stars: Int;
  /** @maxLength 1000 */
  text: string;
}

interface Review extends NewReview {
  id: Int;
}

type OneBook = ControllerParams<{ path: { id: Int } }>;

export default class BookController extends ShopController {
  // With MCP=on, operations that have a tool are tools for agents, too.
  static operations: Operations<BookController> = {
    GET: { tool: 'find_books' },
    POST: { access: { scope: 'books:write' }, tool: 'add_book' },
    'GET {id}': { tool: 'get_book' },
    'PATCH {id}': { access: { scope: 'books:write' }, tool: 'change_book' },
    'DELETE {id}': { access: { scope: 'books:write' }, tool: 'delete_book' },
    'GET {id}/reviews': { tool: 'list_reviews' },
    'POST {id}/reviews': { tool: 'add_review' },
    'GET {id}/cover': { tool: 'show_cover' },
    'PUT {id}/cover': { access: { scope: 'books:write' }, accepts: ['image/*'], bodyLimit: 10 * 1024 * 1024 },
  };

  /** Finds books, page by page. `total` is the number of all books that fit; without a filter it counts all books. */
  'GET'({ page = 1, size = 20, title, author, inPrint, maxPrice, sort = 'title', descending = false }: BookQuery): {
    books: Book[];
    page: Int;
    total: Int;
  } {
    const where = `WHERE (?1 IS NULL OR instr(lower(title), lower(?1))) AND (?2 IS NULL OR instr(lower(author), lower(?2)))
      AND (?3 IS NULL OR inPrint = ?3) AND (?4 IS NULL OR price <= ?4)`;
    const filter = [title ?? null, author ?? null, inPrint === undefined ? null : Number(inPrint), maxPrice ?? null];
    const { total } = database.prepare(`SELECT count(*) AS total FROM book ${where}`).get(...filter) as {
      total: number;
    };
    const order = `ORDER BY ${sort} ${descending ? 'DESC' : 'ASC'}, id LIMIT ?5 OFFSET ?6`;
    const rows = database.prepare(`SELECT * FROM book ${where} ${order}`).all(...filter, size, (page - 1) * size);
    return { books: rows.map((row) => toBook(row as Row)), page, total };
  }

  /** Adds a book to the shop. The shop has one book of each ISBN. Without tags, send an empty list. */
  'POST'(book: NewBook): Reply<201, Book> {
    const row = toRow(book);
    const taken = database.prepare('SELECT id FROM book WHERE isbn = ?').get(book.isbn) as { id: number } | undefined;
    if (taken !== undefined) throw isbnTaken(taken.id);
    const insert = `INSERT INTO book (${COLUMNS.join()}) VALUES (${COLUMNS.map(() => '?').join()})`;
    const { lastInsertRowid } = database.prepare(insert).run(...COLUMNS.map((column) => row[column] ?? null));
    const made = findBook(Number(lastInsertRowid));
    return new Reply(201, made, { Location: `/api/book/${made.id}`, ETag: etagOf(made) });
  }

  'GET latest'(): Reply<303, undefined> {
    const row = database.prepare('SELECT max(id) AS id FROM book').get() as { id: number | null };
    if (row.id === null) throw new HttpError(404, 'BOOK_NOT_FOUND', 'There is no book yet');
    return Reply.redirect(`/api/book/${row.id}`, 303);
  }

  /** All books as CSV, a row at a time: the file is never in memory as a whole. */
  'GET export.csv'(): Reply<200, Readable> {
    const csv = function* () {
      yield `id,${COLUMNS.join()}\r\n`;
      for (const row of database.prepare(`SELECT id, ${COLUMNS.join()} FROM book ORDER BY id`).iterate()) {
        yield `${Object.values(row as object)
          .map((value) => `"${String(value).replaceAll('"', '""')}"`)
          .join()}\r\n`;
      }
    };
    const headers = {
      'Content-Type': 'text/csv; charset=UTF-8',
      'Content-Disposition': 'attachment; filename="books.csv"',
    };
    return new Reply(200, Readable.from(csv()), headers);
  }

  /** Gets one book with all its fields, by its id. */
  'GET {id}'(_: undefined, { path: { id } }: OneBook): Reply<200, Book> {
    const book = findBook(id);
    return new Reply(200, book, { ETag: etagOf(book), 'Cache-Control': 'no-cache' });
  }

  /** Changes the fields that are sent, and no others, if the book still has the version that is sent. */
  'PATCH {id}'({ version, ...change }: BookChange, params: OneBook): Reply<200, Book> {
    const before = findBook(params.path.id);
    if (version === undefined && params.request.headers['if-match'] === undefined)
      throw new HttpError(428, 'VERSION_MISSING', 'Get the book, and send its version with the change', {
        details: [{ pointer: '/version', message: 'is missing' }],
      });
    if (version === undefined) ifMatch(params, etagOf(before));
    else if (version !== before.version) throw changedMeanwhile();
    const row = toRow(change);
    const taken = database
      .prepare('SELECT id FROM book WHERE isbn = ? AND id <> ?')
      .get(change.isbn ?? null, before.id);
    if (taken !== undefined) throw isbnTaken((taken as { id: number }).id);
    const sets = [...Object.keys(row).map((column) => `${column} = ?`), 'version = version + 1'];
    const update = `UPDATE book SET ${sets.join()} WHERE id = ? AND version = ?`;
    const { changes } = database.prepare(update).run(...Object.values(row), before.id, before.version);
    const book = findBook(before.id);
    if (changes === 0) throw changedMeanwhile();
    return new Reply(200, book, { ETag: etagOf(book) });
  }

  /** Deletes a book with its reviews, for good. */
  'DELETE {id}'(_: undefined, { path: { id } }: OneBook): Reply<204> {
    findBook(id);
    database.prepare('DELETE FROM book WHERE id = ?').run(id);
    return new Reply(204);
  }

  /** Lists the reviews of a book, the oldest first. */
  'GET {id}/reviews'(_: undefined, { path: { id } }: OneBook): Review[] {
    findBook(id);
    return database
      .prepare('SELECT id, stars, text FROM review WHERE book = ? ORDER BY id')
      .all(id) as unknown as Review[];
  }

  /** Adds a review to a book. Nobody can change or delete it. */
  'POST {id}/reviews'(review: NewReview, { path: { id } }: OneBook): Reply<201, Review> {
    findBook(id);
    const { lastInsertRowid } = database
      .prepare('INSERT INTO review (book, stars, text) VALUES (?, ?, ?)')
      .run(id, review.stars, review.text);
    const made = { id: Number(lastInsertRowid), ...review };
    return new Reply(201, made, { Location: `/api/book/${id}/reviews/${made.id}` });
  }

  'GET {id}/reviews/{review}'(_: undefined, { path }: ControllerParams<{ path: { id: Int; review: Int } }>): Review {
    const found = database
      .prepare('SELECT id, stars, text FROM review WHERE book = ? AND id = ?')
      .get(path.id, path.review);
    if (found === undefined) throw new HttpError(404, 'REVIEW_NOT_FOUND', 'There is no such review');
    return found as unknown as Review;
  }

  async 'PUT {id}/cover'(cover: unknown, { path: { id } }: OneBook): Promise<Reply<204>> {
    findBook(id);
    if (!(cover instanceof Blob)) throw new HttpError(415, 'NO_IMAGE', 'Send an image');
    const bytes = new Uint8Array(await cover.arrayBuffer());
    database.prepare('UPDATE book SET cover = ?, coverType = ? WHERE id = ?').run(bytes, cover.type, id);
    return new Reply(204);
  }

  /** Shows the cover of a book, as an image. */
  'GET {id}/cover'(_: undefined, { path: { id } }: OneBook): Reply<200, Uint8Array> {
    const row = database.prepare('SELECT cover, coverType FROM book WHERE id = ?').get(id) as
      | { cover: Uint8Array | null; coverType: string }
      | undefined;
    if (row === undefined || row.cover === null)
      throw new HttpError(404, 'COVER_NOT_FOUND', `There is no cover of a book with the id ${id}`);
    return new Reply(200, row.cover, { 'Content-Type': row.coverType });
  }
}

function isbnTaken(id: number): HttpError {
  return new HttpError(409, 'ISBN_TAKEN', 'There is a book of this ISBN', {
    details: [{ pointer: '/isbn', message: `is that of the book with the id ${id}` }],
  });
}

// The refusal does not name the present version. A client that sent it without reading the book would undo a change.
function changedMeanwhile(): HttpError {
  return new HttpError(
    412,
    'PRECONDITION_FAILED',
    'The book has another version: get it again, and look at it before you change it',
    {
      details: [{ pointer: '/version', message: 'is another one' }],
    },
  );
}
