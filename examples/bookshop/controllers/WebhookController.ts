// /api/webhook/payment: the payment provider reports that an order is paid. Its signature is over the bytes as sent.
// JSON that is parsed and printed again may have other bytes.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type ControllerParams, HttpError, type Int } from 'gatefold';
import { database, ShopController } from '../lib/database.ts';

const SECRET = process.env.WEBHOOK_SECRET ?? 'change me';

interface PaymentEvent {
  type: 'paid' | 'refunded';
  order: Int;
}

export default class WebhookController extends ShopController {
  'POST payment'({ type, order }: PaymentEvent): { received: true } {
    database.prepare('UPDATE purchase SET paid = ? WHERE id = ?').run(type === 'paid' ? 1 : 0, order);
    return { received: true };
  }

  /** A guard runs before every operation of the group. */
  _before(_: unknown, { bytes, request }: ControllerParams): void {
    const expected = createHmac('sha256', SECRET).update(bytes).digest();
    const sent = Buffer.from(String(request.headers['x-signature'] ?? ''), 'hex');
    if (sent.length !== expected.length || !timingSafeEqual(sent, expected))
      throw new HttpError(401, 'WRONG_SIGNATURE', 'The signature does not fit the body');
  }
}
