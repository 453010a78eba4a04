// /api/session: sign in with a password, stay signed in by a cookie, sign out. Guessing is slowed down by address.
import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';
import { type ControllerParams, HttpError, type Operations, type Params, Reply } from 'gatefold';
import { database, ShopController } from '../lib/database.ts';

const USERS = new Map([['ada', scryptSync('notes', 'ada', 32)]]);

interface SignIn {
  user: string;
  password: string;
}

export default class SessionController extends ShopController {
  static operations: Operations<SessionController> = { POST: { limit: '5/m' } };

  'POST'({ user, password }: SignIn): Reply<201, { user: string }> {
    const secret = USERS.get(user);
    if (secret === undefined || !timingSafeEqual(secret, scryptSync(password, user, 32)))
      throw new HttpError(401, 'WRONG_PASSWORD', 'User or password is wrong');
    const token = randomBytes(24).toString('base64url');
    database.prepare('INSERT INTO session (token, user) VALUES (?, ?)').run(token, user);
    return new Reply(201, { user }, { 'Set-Cookie': `session=${token}; HttpOnly; SameSite=Lax; Path=/api` });
  }

  /**
   * Returns the signed-in user. Its route makes the group strict: no operation answers by its name under another verb.
   */
  'GET me'(_: undefined, params: ControllerParams): { user: string } {
    const row = database.prepare('SELECT user FROM session WHERE token = ?').get(tokenOf(params));
    if (row === undefined) throw new HttpError(401, 'NOT_SIGNED_IN', 'Sign in first');
    return row as { user: string };
  }

  'DELETE'(_: undefined, params: ControllerParams): Reply<204> {
    database.prepare('DELETE FROM session WHERE token = ?').run(tokenOf(params));
    return new Reply(204, undefined, { 'Set-Cookie': 'session=; Max-Age=0; Path=/api' });
  }
}

function tokenOf({ request }: Pick<Params, 'request'>): string {
  return /(?:^|;\s*)session=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? '';
}
