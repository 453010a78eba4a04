// What the author of a controller imports: `import { HttpError, type ControllerParams } from 'gatefold'`.
// Types, and the one class a controller throws to refuse on purpose; nothing of the server.
import type { IncomingMessage } from 'node:http';

export { HttpError, type HttpErrorOptions } from './base/errors.ts';

/** The application that a request's credential belongs to (SDK mode). No secret is in it. */
export interface CallingApplication {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  /** The identity that registered it: OpenID Connect `iss` and `sub`. */
  readonly owner?: { readonly issuer: string; readonly subject: string };
}

/**
 * The controller params: the second argument of every operation. The enumerable fields are JSON-safe;
 * `request` and `signal` are not enumerable, so an echo of the params never carries them.
 */
export interface ControllerParams {
  /** The handler group as the URL names it: `user` for `/api/user`. */
  readonly page: string;
  /** The operation that was called: `index`, `created`, … */
  readonly method: string;
  /** The HTTP method, upper case. */
  readonly verb: string;
  /** All path segments after the group, percent-decoded. */
  readonly slugs: string[];
  /** The query string; a repeated key is an array. Has no prototype. */
  readonly query: Record<string, string | string[]>;
  /** The request id: the client's `X-Request-Id` when it is well formed, else a new one. */
  readonly requestId: string;
  /** In SDK mode alone. */
  readonly application?: CallingApplication;
  /** The request as Node has it. Its body has been read already. */
  readonly request: IncomingMessage;
  /** Aborted when the client is gone or the operation is out of time. */
  readonly signal: AbortSignal;
}

/** A form field or file of a request body; repeated keys become an array. */
export type FormValue = string | File | (string | File)[];
