// The header lines that every answer has: CORS, `nosniff`, and the headers of the service file. One set of ready arrays
// exists for each origin, because an array for each answer costs 4 to 19 percent of a request (bench/NOTES.md).
import type { CorsPolicy } from '../../service/cors.ts';
import type { ServiceDefinition } from '../../service/definition.ts';
import { ALLOW_METHODS, EXPOSE, NO_STORE, ON_EVERY_ANSWER } from '../headers.ts';

export interface HeaderSet {
  /** For a JSON answer. The caller writes the last value (length) and the third last (request id) in place. */
  readonly json: string[];
  /** The same for an answer that no cache may keep. */
  readonly uncached: string[];
  /**
   * All lines of an answer that brings headers of its own.
   *
   * @param own alternating names and values
   */
  withOwn(own: readonly string[]): string[];
  /** One of the two arrays with more lines. The result exposes those, too. */
  extended(usual: readonly string[], extra: readonly string[]): string[];
  /** @param requested the header `Access-Control-Request-Headers` */
  preflight(requested: string | undefined): string[];
}

/** @returns the set for a request with this header `Origin` */
export type HeaderSets = (origin: string | undefined) => HeaderSet;

type ServiceHeaders = Pick<ServiceDefinition, 'cors' | 'headers'>;

export const JSON_TYPE = ['Content-Type', 'application/json; charset=UTF-8'];
const EXPOSED = 'Access-Control-Expose-Headers';
const NOSNIFF = ['X-Content-Type-Options', 'nosniff'];
/** Headers whose two values the sender fills in. */
export const COUNTED: readonly string[] = ['X-Request-Id', '', 'Content-Length', ''];
/** Maximum header sets that are kept. A client may invent any number of subdomains for a wildcard. */
const MAX_SETS = 100;

/** @param service undefined: the headers of the reference */
export function createHeaderSets(service: ServiceHeaders | undefined): HeaderSets {
  const headers = service?.headers ?? [];
  const cors = service?.cors;
  if (cors === undefined) {
    const only = createSet({
      fixed: ON_EVERY_ANSWER,
      exposed: EXPOSE[1],
      headers,
      preflight: () => [...ON_EVERY_ANSWER, 'Access-Control-Max-Age', '86400'],
    });
    return () => only;
  }
  const sets = new Map<string, HeaderSet>();
  const other = policySet(cors, undefined, headers);
  return (origin) => {
    if (origin === undefined && cors.allows !== undefined) return other;
    const allowed = cors.allows === undefined ? '*' : (origin as string);
    const ready = sets.get(allowed);
    if (ready !== undefined) return ready;
    if (cors.allows?.(allowed) === false) return other;
    const set = policySet(cors, allowed, headers);
    if (sets.size >= MAX_SETS) sets.delete(sets.keys().next().value as string);
    sets.set(allowed, set);
    return set;
  };
}

/** @param origin the value of `Access-Control-Allow-Origin`; undefined: no CORS header at all */
function policySet(cors: CorsPolicy, origin: string | undefined, headers: readonly string[]): HeaderSet {
  const vary = cors.allows === undefined ? [] : ['Vary', 'Origin'];
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
      return [...fixed, 'Access-Control-Allow-Methods', ALLOW_METHODS, ...names, ...maxAge];
    },
  });
}

interface SetParts {
  readonly fixed: readonly string[];
  /** Undefined: the names of the headers in the answer. Null: none, since no page may read the answer. */
  readonly exposed: string | undefined | null;
  readonly headers: readonly string[];
  readonly preflight: (requested: string | undefined) => readonly string[];
}

function createSet({ fixed, exposed, headers, preflight }: SetParts): HeaderSet {
  const names = namesOf(headers);
  /** @param own the names that the answer brings */
  const exposeLine = (own: readonly string[]): readonly string[] => {
    if (exposed === null || exposed === '') return [];
    return [EXPOSED, exposed ?? [...own, ...names, 'X-Request-Id'].join(', ')];
  };
  const usual = [...JSON_TYPE, ...fixed, ...exposeLine([]), ...headers];
  return {
    json: [...usual, ...COUNTED],
    uncached: [...usual, ...NO_STORE, ...COUNTED],
    withOwn(own) {
      const ownNames = namesOf(own);
      const present = new Set(ownNames.map((name) => name.toLowerCase()));
      const lines = [...own, ...fixed, ...exposeLine(ownNames)];
      // A header of the answer itself wins over the one of the service file.
      for (let i = 0; i < headers.length; i += 2) {
        const name = headers[i] as string;
        if (!present.has(name.toLowerCase())) lines.push(name, headers[i + 1] as string);
      }
      return lines;
    },
    extended(usual, extra) {
      const lines = [...usual, ...extra];
      if (extra.length === 0) return lines;
      if (exposed === undefined) lines[lines.indexOf(EXPOSED) + 1] += `, ${namesOf(extra).join(', ')}`;
      return lines;
    },
    preflight: (requested) => [...preflight(requested), ...headers],
  };
}

function namesOf(lines: readonly string[]): string[] {
  return lines.filter((_, i) => i % 2 === 0);
}
