// The headers that code of the author sets for the answer to one request, before the answer is known.
import { validateHeaderName, validateHeaderValue } from './builtins.ts';
import { isOnEveryAnswer, isReservedHeader } from './server-headers.ts';

/** Headers that belong to certain answers of the server, or to the connection (RFC 9110, 7.6.1). */
const HEADERS_OF_THE_SERVER: ReadonlySet<string> = new Set(
  'allow retry-after www-authenticate proxy-connection te'.split(' '),
);
/** Headers that describe the body of a result. So the body of an error, or an answer without a body, lacks them. */
export const DESCRIBES_CONTENT = /^content-(?!location$|security-policy)/i;

/** Returns the headers of both. The second ones win, whatever the case of their names, unless they are undefined. */
export function mergeHeaders<Value>(headers: Readonly<Record<string, Value>>, own: Readonly<Record<string, Value>>) {
  const ownEntries = Object.entries(own).filter(([, value]) => value !== undefined);
  const ownNames = new Set(ownEntries.map(([name]) => name.toLowerCase()));
  const others = Object.entries(headers).filter(([name]) => !ownNames.has(name.toLowerCase()));
  return Object.fromEntries([...others, ...ownEntries]);
}

interface Line {
  readonly name: string;
  readonly lower: string;
  readonly value: string;
}

export class OwnHeaders {
  #lines: Line[] = [];

  /** @throws TypeError when the server alone may set the header, and for an invalid name or value */
  set(name: string, value: unknown): void {
    const line = createLine(name, value);
    this.#lines = [...this.#lines.filter(({ lower }) => lower !== line.lower), line];
  }

  /** @throws TypeError like `set` */
  append(name: string, value: unknown): void {
    this.#lines.push(createLine(name, value));
  }

  /** Replaces a cookie of the same name, path and domain. @param value the value of a header `Set-Cookie` */
  setCookie(value: string): void {
    const id = cookieId(value);
    this.#lines = this.#lines.filter((line) => line.lower !== 'set-cookie' || cookieId(line.value) !== id);
    this.append('Set-Cookie', value);
  }

  get contentType(): string | undefined {
    return this.#lines.find(({ lower }) => lower === 'content-type')?.value;
  }

  /**
   * Adds these headers to the header lines of an answer, whose own lines win. Cookies of both are sent.
   *
   * @param answerLines alternating names and values
   * @param hasContent false when the body, if there is one, is not that of the result
   */
  addTo(answerLines: readonly string[], hasContent: boolean): string[] {
    const lines = [...answerLines];
    const names = new Set<string>();
    const cookies = new Set<string>();
    for (let i = 0; i < lines.length; i += 2) {
      const lower = (lines[i] as string).toLowerCase();
      if (lower === 'set-cookie') cookies.add(cookieId(lines[i + 1] as string));
      else names.add(lower);
    }
    let setsCookie = false;
    for (const { name, lower, value } of this.#lines) {
      const isCookie = lower === 'set-cookie';
      setsCookie ||= isCookie;
      if (isCookie ? cookies.has(cookieId(value)) : names.has(lower) || isOnEveryAnswer(lower)) continue;
      if (hasContent || !DESCRIBES_CONTENT.test(lower)) lines.push(name, value);
    }
    const isCached = names.has('cache-control') || this.#lines.some(({ lower }) => lower === 'cache-control');
    if (setsCookie && !isCached) lines.push('Cache-Control', 'no-store');
    return lines;
  }
}

function createLine(name: string, value: unknown): Line {
  validateHeaderName(name);
  const lower = name.toLowerCase();
  if (isReservedHeader(lower) || HEADERS_OF_THE_SERVER.has(lower))
    throw new TypeError(`the header ${name} belongs to the server`);
  if (typeof value !== 'string' && !Number.isFinite(value))
    throw new TypeError(`the header ${name} must be a text or a number: call appendHeader for each entry of a list`);
  const text = String(value);
  validateHeaderValue(name, text);
  return { name, lower, value: text };
}

/** Returns what distinguishes two cookies: the name, the path and the domain (RFC 6265, 5.3). */
function cookieId(line: string): string {
  const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
  const places = attributes
    .filter((attribute) => /^(?:path|domain)=/i.test(attribute))
    .map((text) => text.toLowerCase());
  return [pair.replace(/=.*/s, ''), ...places.sort()].join(';');
}
