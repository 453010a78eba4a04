// Checks whether a web page of another origin may make a request. A page can make the browser of a user send a form, a
// link or an image to this service, and the browser adds the user's cookies or password by itself (CSRF). CORS does not
// stop such a request: it only hides the answer from the page.

import type { Access } from '../../api/controller/operations.ts';
import { refusal } from '../../base/errors.ts';
import { ANY_VERB } from '../../base/route-name.ts';
import type { Exchange, Step } from '../../request/exchange.ts';
import { rulesOf } from './access.ts';
import type { ServiceDefinition } from './definition.ts';

export interface OriginParts {
  /** Whether TLS ends in this process. */
  readonly isSecure: boolean;
  /** The setting PUBLIC_ORIGIN. */
  readonly publicOrigins: readonly string[];
}

type OriginRules = Pick<ServiceDefinition, 'authenticate' | 'cors'>;

/** The verbs of the operations that change nothing. Pages of any origin may call these. */
const READING_VERBS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Matches a value of `Authorization` that browsers send by themselves, once the user has typed a password. */
const AMBIENT_AUTHORIZATION = /^(?:basic|digest|ntlm|negotiate)(?:\s|$)/i;

/**
 * Creates the step that follows the search for the operation. It checks an operation that changes something, whatever
 * the verb of the request is: in a group that is not strict, a GET can call `deleted`. The step checks where something
 * reads the cookies: `authenticate`, a page that may send them, or a function in the `access` of the operation. The
 * step checks every handshake, because CORS does not hide a WebSocket from a page.
 */
export function createCheckOrigin(
  { authenticate, cors }: Partial<OriginRules> = {},
  { isSecure, publicOrigins }: OriginParts,
): Step {
  const readsCookies = authenticate !== undefined || cors?.credentials === true;

  function checkOrigin(exchange: Exchange): undefined {
    const { verb: ownVerb, settings, mount } = exchange.choice.operation;
    const opensSocket = mount !== undefined && exchange.opensSocket;
    if (opensSocket ? mount.ownsHandshakes : mount?.ownsCors) return;
    const verb = ownVerb === ANY_VERB ? exchange.verb : ownVerb;
    // The headers come last, because Node makes the object of all headers at its first use.
    const isHarmless = READING_VERBS.has(verb) || !mayUseCookies(settings.access) || !isSentByBrowserAlone(exchange);
    if (!opensSocket && isHarmless) return;
    const { origin } = exchange.head;
    const site = exchange.request.headers['sec-fetch-site'];
    // `none`: the user has typed the address or opened a bookmark.
    if (site === 'same-origin' || site === 'none') return;
    if (origin === undefined && site === undefined) return opensSocket ? undefined : checkVerbOfProgram(exchange.verb);
    if (origin === undefined || !isAllowed(exchange, origin, site === undefined ? ownOrigin(exchange) : undefined))
      throw refusal('ORIGIN_NOT_ALLOWED');
  }

  function mayUseCookies(access: Access = 'anyone'): boolean {
    return readsCookies || rulesOf(access).some((rule) => typeof rule === 'function');
  }

  function isAllowed({ request }: Exchange, origin: string, own: string | undefined): boolean {
    if (origin === own || publicOrigins.includes(origin)) return true;
    // Where all origins are allowed, everybody may read, and nobody may use the cookies of a user.
    return cors?.isOpen === false && cors.allows?.(origin, request) === true;
  }

  /** Returns the origin that a browser has for this service if no proxy is between them. Browsers send `Host`. */
  function ownOrigin({ head: { host } }: Exchange): string | undefined {
    if (host === undefined) return undefined;
    // An origin never contains the default port of its scheme.
    return isSecure
      ? `https://${host.replace(/:443$/, '')}`.toLowerCase()
      : `http://${host.replace(/:80$/, '')}`.toLowerCase();
  }

  return checkOrigin;
}

/** Says whether the request has only what a browser adds to a request of any page. A page cannot know a key. */
export function isSentByBrowserAlone({ caller, head: { authorization, cookie } }: Exchange): boolean {
  if (caller.row !== undefined) return false;
  return cookie !== undefined || (authorization !== undefined && AMBIENT_AUTHORIZATION.test(authorization));
}

/** Checks a request without `Origin` and `Sec-Fetch-Site`. An old browser sends neither with a link or an image. */
function checkVerbOfProgram(verb: string): undefined {
  if (verb !== 'GET' && verb !== 'HEAD') return;
  throw refusal(
    'ORIGIN_NOT_ALLOWED',
    `${verb} may not call what changes something with a cookie or a password: use POST`,
  );
}

/**
 * Creates the step that refuses a message of the Model Context Protocol from a web page, unless `cors` of the service
 * file has `origins` that allow it. A page could let its own host name lead to this address, and then call tools from
 * inside the network (DNS rebinding). So the service's own origin counts as foreign, too.
 */
export function createCheckMessageOrigin(cors: OriginRules['cors']): Step {
  return ({ head: { origin }, request }): undefined => {
    // Programs send neither header.
    if (origin === undefined && request.headers['sec-fetch-site'] === undefined) return;
    if (origin !== undefined && cors?.namesOrigins === true && cors.allows?.(origin, request) !== false) return;
    throw refusal('ORIGIN_NOT_ALLOWED');
  };
}
