import { type Email, Reply } from 'gatefold';

/** Signing in with a cookie. */
export default class SessionController {
  /** Signs in. */
  created(_login: {
    email: Email;
    /** @minLength 8 */
    password: string;
  }): Reply<204> {
    return new Reply(204, undefined, { 'Set-Cookie': 'session=1' });
  }

  /** Signs out. */
  deleted(): Reply<204> {
    return new Reply(204);
  }
}
