// /api/payments: the payment provider reports a paid order. Its signature is over the bytes as they came.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { and, eq, sql } from 'drizzle-orm';
import { type ControllerParams, HttpError, type Int, type Operations, Reply } from 'gatefold';
import { db } from '../lib/database.ts';
import { orders, teams } from '../lib/schema.ts';

export default class PaymentsController {
  static operations: Operations<PaymentsController> = { '*': { access: 'anyone' } };

  /** The provider may report a payment twice. The team gets its seats once. */
  async POST({ order }: { order: Int }): Promise<Reply<204>> {
    await db.transaction(async (tx) => {
      const [paid] = await tx
        .update(orders)
        .set({ paid: true })
        .where(and(eq(orders.id, order), eq(orders.paid, false)))
        .returning();
      if (paid === undefined) return;
      await tx
        .update(teams)
        .set({ seats: sql`${teams.seats} + ${paid.seats}` })
        .where(eq(teams.id, paid.teamId));
    });
    return new Reply(204);
  }

  _before(_: unknown, { bytes, request }: ControllerParams): void {
    const secret = process.env.PAYMENT_SECRET;
    if (!secret) throw new Error('PAYMENT_SECRET is missing');
    const expected = createHmac('sha256', secret).update(bytes).digest();
    const sent = Buffer.from(String(request.headers['x-signature']), 'hex');
    if (sent.length !== expected.length || !timingSafeEqual(sent, expected))
      throw new HttpError(401, 'WRONG_SIGNATURE', 'The signature does not fit the body');
  }
}
