import { type ControllerParams, type Email, type EventStream, eventStream, HttpError, type Int, Reply } from 'gatefold';
import type { Item, NewOrder, Order } from './types.ts';

type ById = ControllerParams<{ path: { id: Int } }>;
type ByLine = ControllerParams<{ path: { id: Int; line: Int } }>;

const orders = new Map<number, Order>();

function orderOf(id: number): Order {
  const order = orders.get(id);
  if (order === undefined) throw new HttpError(404, 'ORDER_NOT_FOUND', 'There is no such order');
  return order;
}

async function* three(): AsyncGenerator<{ order: number }> {
  for (const order of [1, 2, 3]) yield { order };
}

/** Orders, and what becomes of them. */
export default class OrderController {
  /** Orders of a customer. */
  index({ customer }: { customer: Email; state?: 'open' | 'paid' | 'sent'; since?: Date }): Order[] {
    return [...orders.values()].filter((order) => order.customer === customer);
  }

  /** Places an order. */
  created(order: NewOrder): Reply<201, Order> {
    const made: Order = { ...order, id: orders.size + 1, state: 'open', total: 0, placed: new Date(0) };
    orders.set(made.id, made);
    return new Reply(201, made);
  }

  /** One order. */
  'GET {id}'(_: unknown, { path: { id } }: ById): Order {
    return orderOf(id);
  }

  /** Cancels an order. */
  'DELETE {order}'(_: unknown, { path: { order } }: ControllerParams<{ path: { order: Int } }>): Reply<204> {
    orders.delete(order);
    return new Reply(204);
  }

  /** Pays an order. */
  'POST {id}/pay'(payment: { method: 'card' | 'invoice'; token?: string }, { path: { id } }: ById): Order {
    return Object.assign(orderOf(id), { state: 'paid', method: payment.method });
  }

  /** One line of an order. */
  'GET {id}/items/{line}'(_: unknown, { path: { id, line } }: ByLine): Item | null {
    return orderOf(id).items[line] ?? null;
  }

  /** Replaces a line. */
  'PUT {id}/items/{line}'(item: Item, { path: { id, line } }: ByLine): Item {
    orderOf(id).items[line] = item;
    return item;
  }

  /** Streams every event of an order. */
  'POST events'(): EventStream<{ order: number }> {
    return eventStream(three());
  }
}
