// Builds the header lines that every answer has: CORS, `nosniff`, and the headers of the service file. The arrays are
// built once for each origin of a web page, because to build them for each answer costs 4 to 19 percent of a request
// (bench/NOTES.md).
import type { IncomingMessage } from 'node:http';
import { JSON_TYPE } from '../../base/envelope.ts';
import { ALL_METHODS, type CorsPolicy } from '../../callers/access/cors.ts';
import type { ServiceDefinition } from '../../callers/access/definition.ts';

/** The header lines of answers to one origin. Each array has alternating names and values. */
export type HeaderSet = ReturnType<typeof createSet>;

/** `request` is undefined for bytes that are no request. */
export type HeaderSets = (origin: string | undefined, request?: IncomingMessage) => HeaderSet;

export type ServiceHeaders = Pick<ServiceDefinition, 'cors' | 'headers' | 'keyHeader'>;

/** With `nosniff`, a browser trusts the content type and does not guess another from the bytes. */
const NOSNIFF = ['X-Content-Type-Options', 'nosniff'];
/** Without `cors` in the service file, every answer has these lines. */
const OPEN_TO_ALL = [
  ...['Access-Control-Allow-Origin', '*', 'Access-Control-Allow-Methods', ALL_METHODS],
  // `Authorization` is listed, because `*` does not cover it (Fetch standard, `Access-Control-Allow-Headers`).
  ...['Access-Control-Allow-Headers', '*, Authorization', ...NOSNIFF],
];
export const NO_STORE = ['Cache-Control', 'no-store'];
export const NO_LINES: readonly string[] = [];
/** Shared caches take care of `Authorization` by themselves (RFC 9111, section 3.5), and not of a cookie. */
const PRIVATE = ['Cache-Control', 'private'];
const EXPOSE = 'Access-Control-Expose-Headers';
/** The last header lines of an answer. The sender fills in the two empty values, at the indexes -3 and -1. */
export const LAST_LINES: readonly string[] = ['X-Request-Id', '', 'Content-Length', ''];
/** Header sets in memory. With `https://*.example.com` in `cors`, a client can invent any number of subdomains. */
const MAX_SETS = 100;

/** @param service the service file; undefined when every answer gets the headers of docs/REFERENCE.md */
export function createHeaderSets(service: ServiceHeaders | undefined): HeaderSets {
  const headers = service?.headers ?? [];
  const cors = service?.cors;
  const keyHeaders = service?.keyHeader === undefined ? [] : [service.keyHeader];
  if (cors === undefined) {
    const fixed = [...OPEN_TO_ALL, ...varyLine(keyHeaders)];
    const openSet = createSet({
      fixed,
      exposed: '*',
      headers,
      preflight: () => [...fixed, 'Access-Control-Max-Age', '86400'],
    });
    return () => openSet;
  }
  const sets = new Map<string, HeaderSet>();
  const vary = varyLine(cors.allows === undefined ? keyHeaders : ['Origin', ...keyHeaders]);
  const foreignSet = policySet(cors, undefined, headers, vary);
  return (origin, request) => {
    // `allows` is undefined when every origin is allowed.
    if (origin === undefined && cors.allows !== undefined) return foreignSet;
    const allowedOrigin = cors.allows === undefined ? '*' : (origin as string);
    const cachedSet = sets.get(allowedOrigin);
    if (cachedSet !== undefined && !cors.dependsOnRequest) return cachedSet;
    if (cors.allows?.(allowedOrigin, request as IncomingMessage) === false) return foreignSet;
    if (cachedSet !== undefined) return cachedSet;
    const set = policySet(cors, allowedOrigin, headers, vary);
    // The first key of a Map is the oldest.
    if (sets.size >= MAX_SETS) sets.delete(sets.keys().next().value as string);
    sets.set(allowedOrigin, set);
    return set;
  };
}

/** Creates the lines of a mount that sets its own CORS headers, and `Vary`. @param headers those of the service file */
export function createOwnCorsSet(headers: readonly string[] = []): HeaderSet {
  return createSet({ fixed: NOSNIFF, exposed: null, headers, preflight: () => [] });
}

/**
 * A shared cache keeps no answer to a request with `Authorization` (RFC 9111, section 3.5), but knows no other header
 * of keys. So answers name that header, and the cache gives them to nobody without the same key.
 */
function varyLine(names: readonly string[]): readonly string[] {
  return names.length === 0 ? [] : ['Vary', names.join(', ')];
}

/** @param origin the value of `Access-Control-Allow-Origin`; undefined when no web page may read the answer */
function policySet(
  cors: CorsPolicy,
  origin: string | undefined,
  headers: readonly string[],
  vary: readonly string[],
): HeaderSet {
  if (origin === undefined) {
    const fixed = [...vary, ...NOSNIFF];
    return createSet({ fixed, exposed: null, headers, preflight: () => fixed });
  }
  const credentials = cors.credentials ? ['Access-Control-Allow-Credentials', 'true'] : [];
  const fixed = ['Access-Control-Allow-Origin', origin, ...credentials, ...vary, ...NOSNIFF];
  return createSet({
    fixed,
    exposed: cors.exposeHeaders,
    headers,
    preflight(requested) {
      const allowed = cors.allowHeaders ?? requested;
      const names = allowed === undefined || allowed === '' ? [] : ['Access-Control-Allow-Headers', allowed];
      const maxAge = ['Access-Control-Max-Age', String(cors.maxAge)];
      return [...fixed, 'Access-Control-Allow-Methods', cors.methods, ...names, ...maxAge];
    },
  });
}

interface SetParts {
  /** The lines that are the same in each answer of this set. */
  readonly fixed: readonly string[];
  /** Names of the headers that a web page can read; undefined for all of the answer, null for pages without access. */
  readonly exposed: string | undefined | null;
  readonly headers: readonly string[];
  readonly preflight: (requested: string | undefined) => readonly string[];
}

function createSet({ fixed, exposed, headers, preflight }: SetParts) {
  const serviceNames = namesOf(headers);
  const exposeLines = (answerNames: readonly string[]): readonly string[] => {
    if (exposed === null || exposed === '') return [];
    return [EXPOSE, exposed ?? [...answerNames, ...serviceNames, 'X-Request-Id'].join(', ')];
  };
  const usual = ['Content-Type', JSON_TYPE, ...fixed, ...exposeLines([]), ...headers];
  return {
    /** The header lines of a JSON answer. They end in LAST_LINES, in which the sender overwrites the empty values. */
    json: [...usual, ...LAST_LINES],
    /** Like `json`, for an answer that no cache may store. */
    uncached: [...usual, ...NO_STORE, ...LAST_LINES],
    /** Like `json`, for a user whom `authenticate` has found. */
    personal: [...usual, ...PRIVATE, ...LAST_LINES],
    /**
     * Returns all lines but LAST_LINES.
     *
     * @param answerLines the lines of one answer, with its content type
     * @param isPersonal whether the answer is to a user whom `authenticate` has found
     */
    addTo(answerLines: readonly string[], isPersonal = false): string[] {
      const lines = [...answerLines, ...fixed, ...exposeLines(namesOf(answerLines))];
      // A header of the answer replaces the header of the same name from the service file.
      addMissing(lines, headers);
      if (isPersonal) addMissing(lines, PRIVATE);
      return uniteVary(lines);
    },
    /**
     * Returns a copy of `usual` (`json` or `uncached`) with the lines `extra`. Web pages can read the added headers,
     * too, unless the service file lists the headers that pages can read.
     */
    extended(usual: readonly string[], extra: readonly string[]): string[] {
      const lines = [...usual, ...extra];
      // `usual` lacks the line if `origins`, a function of the author, has just answered differently.
      const index = lines.indexOf(EXPOSE);
      if (exposed === undefined && index >= 0) lines[index + 1] += `, ${namesOf(extra).join(', ')}`;
      return uniteVary(lines);
    },
    /** @param requested the header `Access-Control-Request-Headers` */
    preflight: (requested: string | undefined) => [...preflight(requested), ...headers],
  };
}

/** Makes one line of several `Vary`, because nginx before 1.23 obeys only the last. Changes and returns `lines`. */
export function uniteVary(lines: string[]): string[] {
  let first = 0;
  for (let i = 0; i < lines.length; i += 2) {
    if (lines[i]?.length !== 4 || lines[i]?.toLowerCase() !== 'vary') continue;
    if (first === 0) first = i + 1;
    else {
      lines[first] += `, ${lines[i + 1]}`;
      lines.splice(i, 2);
      i -= 2;
    }
  }
  return lines;
}

function namesOf(lines: readonly string[]): string[] {
  return lines.filter((_, i) => i % 2 === 0);
}

/** Adds the default lines whose names the lines do not have. */
export function addMissing(lines: string[], defaults: readonly string[]): void {
  const names = new Set(namesOf(lines).map((name) => name.toLowerCase()));
  for (let i = 0; i < defaults.length; i += 2) {
    if (!names.has((defaults[i] as string).toLowerCase())) lines.push(...defaults.slice(i, i + 2));
  }
}
