// The caller of a request: its key and its user. The steps of key-check.ts and user-check.ts set the fields.
import type { ServiceUser } from '../../api/controller/service.ts';
import type { CallingApplication } from '../../api/controller.ts';
import type { CallerRow } from './credential-rights.ts';

export class CallerState {
  /** The row of the request's key; undefined when the request has no key. */
  row: CallerRow | undefined;
  /** The id of `row`. For a refused key, the id that is written in the key. Without either, ''. */
  credentialId = '';
  user: ServiceUser | undefined;
  /** The id of `user`, as a text. It is a copy, because a getter `user.id` could throw when it is read again. */
  userId: string | undefined;
  /** The value by which the row was found: `Bearer …`, or the key alone. */
  key: string | undefined;
  /** The name, in lower case, of the header that has the key; undefined without a key. */
  keyHeader: string | undefined;
  /** The header `Authorization`, when it holds no credential of this service. */
  foreignAuthorization: string | undefined;
  /** Undefined until the first read (cookies.ts). */
  cookies: Readonly<Record<string, string>> | undefined;

  get application(): CallingApplication | undefined {
    return this.row?.application;
  }
}
