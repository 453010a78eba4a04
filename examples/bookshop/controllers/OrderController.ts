// /api/order: places an order, mails the confirmation after the answer, and sends an event for each order to clients
// that watch.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ControllerParams,
  type EventStream,
  eventStream,
  HttpError,
  type Int,
  type Operations,
  Reply,
  type ServerEvent,
} from 'gatefold';
import { findBook } from '../lib/books.ts';
import { database, ShopController } from '../lib/database.ts';

interface NewOrder {
  /** The id of the book. */
  book: Int;
  /** @minimum 1
   *  @maximum 99 */
  copies: Int;
}

interface Order extends NewOrder {
  id: Int;
  paid: boolean;
}

const toOrder = (row: object): Order => ({ ...(row as Order), paid: (row as { paid: number }).paid === 1 });

export default class OrderController extends ShopController {
  static operations: Operations<OrderController> = { POST: { tool: 'place_order' }, 'GET {id}': { tool: 'get_order' } };

  /** Orders copies of one book. The confirmation goes out by mail, and a mistaken order cannot be taken back. */
  'POST'(order: NewOrder, { log, waitUntil }: ControllerParams): Reply<201, Order> {
    findBook(order.book);
    const { lastInsertRowid } = database
      .prepare('INSERT INTO purchase (book, copies) VALUES (?, ?)')
      .run(order.book, order.copies);
    const made = { id: Number(lastInsertRowid), ...order, paid: false };
    log.info('order placed', { order: made.id, copies: made.copies });
    waitUntil(sendConfirmation(made.id));
    return new Reply(201, made, { Location: `/api/order/${made.id}` });
  }

  /** Server-sent events: every order from now on, or from the last one that the client has seen. */
  'GET events'(_: undefined, { lastEventId, signal }: ControllerParams): EventStream<Order> {
    return eventStream(ordersSince(lastEventId === undefined ? newestOrder() : Number(lastEventId), signal), {
      retry: 100,
    });
  }

  /** Gets an order by its id, and whether it is paid. */
  'GET {id}'(_: undefined, { path: { id } }: ControllerParams<{ path: { id: Int } }>): Order {
    const row = database.prepare('SELECT * FROM purchase WHERE id = ?').get(id);
    if (row === undefined) throw new HttpError(404, 'ORDER_NOT_FOUND', `There is no order with the id ${id}`);
    return toOrder(row);
  }
}

/** Reads new orders from the database, which all workers share. So a new worker continues where the old one ended. */
async function* ordersSince(id: number, signal: AbortSignal): AsyncGenerator<ServerEvent<Order>> {
  for (let last = id; ; ) {
    for (const row of database.prepare('SELECT * FROM purchase WHERE id > ? ORDER BY id').all(last)) {
      const order = toOrder(row);
      last = order.id;
      yield { id: String(last), event: 'order', data: order };
    }
    await sleep(20, undefined, { signal });
  }
}

function newestOrder(): number {
  return (database.prepare('SELECT coalesce(max(id), 0) AS id FROM purchase').get() as { id: number }).id;
}

async function sendConfirmation(order: number): Promise<void> {
  await sleep(50);
  database.prepare('INSERT INTO mail (purchase) VALUES (?)').run(order);
}
