// What a result has inside that JSON shows as `{}`: a Map, a Set, an Error, a promise that nobody awaited. Looked for in development
// alone; as the whole of a result each of them is refused (result.ts).
import { isReply } from '../../controller/reply.ts';
import { isJson, nameOf, whatInstead } from './result.ts';

export interface Lost {
  /** Where in the result it is (RFC 6901). */
  readonly pointer: string;
  readonly reason: string;
}

/** A result that has more values is looked at no further. */
const MOST_VALUES = 10_000;

/** The first of them. The result has been encoded, so it has no cycle. */
export function findLost(result: unknown): Lost | undefined {
  const queue: [pointer: string, value: unknown][] = [['', isReply(result) ? result.body : result]];
  for (let i = 0; i < queue.length && i < MOST_VALUES; i++) {
    const [pointer, value] = queue[i] as (typeof queue)[number];
    if (typeof value !== 'object' || value === null) continue;
    if (!isJson(value) && !ArrayBuffer.isView(value)) {
      // The whole of it is refused, or sent as what it is.
      return pointer === '' ? undefined : { pointer, reason: `JSON shows nothing of ${nameOf(value)}: ${instead(value)}` };
    }
    if (typeof (value as { toJSON?: unknown }).toJSON === 'function') continue;
    for (const [name, inner] of Object.entries(value)) {
      if (queue.length < MOST_VALUES) queue.push([`${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, inner]);
    }
  }
  return undefined;
}

function instead(value: object): string {
  return value instanceof Error ? 'return its message' : whatInstead(value);
}
