// /api/orders: seats for a team. An order that is sent again is the same order, by its key.
import { and, eq } from 'drizzle-orm';
import { type ControllerParams, HttpError, type Operations, type Uuid } from 'gatefold';
import type { User } from '../lib/auth.ts';
import { db } from '../lib/database.ts';
import { type NewOrder, type Order, orders } from '../lib/schema.ts';
import { checkMember } from '../lib/teams.ts';

type Ordered = ControllerParams<{ headers: { 'idempotency-key': Uuid }; user: User }>;

export default class OrdersController {
  static operations: Operations<OrdersController> = { POST: { status: 201 } };

  async POST({ teamId, seats }: NewOrder, { headers, user }: Ordered): Promise<Order> {
    await checkMember(teamId, user, ['owner']);
    const key = headers['idempotency-key'];
    await db.insert(orders).values({ teamId, seats, key }).onConflictDoNothing();
    const [order] = await db
      .select()
      .from(orders)
      .where(and(eq(orders.teamId, teamId), eq(orders.key, key)));
    if (order?.seats !== seats) throw new HttpError(422, 'KEY_REUSED', 'The key belongs to another order');
    return order;
  }
}
