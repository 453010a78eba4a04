import { type ControllerParams, HttpError, type Int, type Operations, Reply } from 'gatefold';
import type { Book, Genre, NewBook, Page } from './types.ts';

type ById = ControllerParams<{ path: { id: Int } }>;

const books = new Map<number, Book>();

function bookOf(id: number): Book {
  const book = books.get(id);
  if (book === undefined) throw new HttpError(404, 'BOOK_NOT_FOUND', 'There is no such book');
  return book;
}

/** The catalogue. Reading is free, writing needs a key with `books:write`. */
export default class BookController {
  static operations: Operations<BookController> = {
    'PUT {id}/cover': { accepts: ['image/*'] },
    'DELETE {id}': { access: { scope: 'books:write' } },
    rebuild: { hidden: true },
  };

  /**
   * Books, a page at a time.
   *
   * Sorted by title unless `sort` says otherwise. A page beyond the last is empty.
   */
  index(query: {
    /** @minimum 1 */
    page?: Int;
    /**
     * @minimum 1
     * @maximum 100
     * @default 20
     */
    size?: Int;
    genre?: Genre;
    sort?: 'title' | 'price';
    tag?: string[];
  }): Page<Book> {
    const { page = 1, size = 20, genre, sort = 'title' } = query;
    const found = [...books.values()].filter((book) => genre === undefined || book.genre === genre);
    found.sort((a, b) => (a[sort] < b[sort] ? -1 : 1));
    return {
      items: found.slice((page - 1) * size, page * size),
      total: found.length,
      next: page * size < found.length ? page + 1 : null,
    };
  }

  /** Adds a book. */
  created(book: NewBook, params: ControllerParams<{ query: { dryRun?: boolean } }>): Reply<201, Book> {
    const made = { ...book, id: books.size + 1, added: new Date(0), stock: 0 };
    if (params.query.dryRun !== true) books.set(made.id, made);
    return new Reply(201, made, { Location: `/api/book/${made.id}` });
  }

  /** All books as CSV. */
  'GET export.csv'(): Blob {
    return new Blob(['id,title\n'], { type: 'text/csv' });
  }

  /** One book. */
  'GET {id}'(_: unknown, { path: { id } }: ById): Book {
    return bookOf(id);
  }

  /**
   * Changes some fields.
   *
   * Fields that are not sent stay. <img src=x onerror="document.title='broken'"><script>document.title = 'broken'</script>
   */
  'PATCH {id}'(change: { title?: string; price?: number; stock?: Int }, { path: { id } }: ById): Book {
    return Object.assign(bookOf(id), change);
  }

  /** Removes a book. */
  'DELETE {id}'(_: unknown, { path: { id } }: ById): Reply<204> {
    bookOf(id);
    books.delete(id);
    return new Reply(204);
  }

  /** The picture of its cover. */
  'GET {id}/cover'(_: unknown, { path: { id } }: ById): Blob {
    return new Blob([`cover of ${id}`], { type: 'image/png' });
  }

  /** Stores the picture of its cover. */
  'PUT {id}/cover'(cover: Blob, { path: { id } }: ById): { book: Int; bytes: Int } {
    return { book: id, bytes: cover.size };
  }

  /** Adds scanned pages. */
  'POST {id}/scans'(scans: { title: string; pages: File[] }, { path: { id } }: ById): { book: Int; pages: Int } {
    return { book: id, pages: scans.pages.length };
  }

  rebuild(): void {}
}
