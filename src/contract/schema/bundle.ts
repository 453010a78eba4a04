// A library's JSON Schema may have definitions of its own, and references into itself. They move to the definitions of
// the group, each under a name that is free there. A definition that several schemas bring is kept once, where its name
// and its meaning are the same. It knows JSON Schema and nothing of operations.
import type { Schema } from '../contract.ts';

/** Where definitions are kept. */
export interface Definitions {
  /** A name like this one that nobody has; it is taken from now on. */
  reserve(name: string): string;
  define(name: string, schema: Schema): void;
}

/** @param label for what has no name of its own: `created_body` */
export type Bundle = (schema: Schema, label: string) => Schema;

/**
 * Keywords whose value is a map of schemas, whose value is no schema, and which change what a reference is relative to.
 */
const MAPS = new Set(['properties', 'patternProperties', 'dependentSchemas']);
const DATA = new Set(['const', 'enum', 'default', 'example', 'examples']);
const LEFT_OUT = new Set(['$schema', '$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '$defs', 'definitions']);
const REF = /"\$ref":("(?:[^"\\]|\\.)*")/g;

export function createBundle({ reserve, define }: Definitions): Bundle {
  const kept = new Map<string, string>();

  return (root, label) => {
    const names = new Map<string, string | undefined>();

    function rewrite(value: unknown): unknown {
      if (Array.isArray(value)) return value.map(rewrite);
      if (!isRecord(value)) return value;
      return Object.fromEntries(Object.entries(value).flatMap(([key, inner]) => rewriteKeyword(key, inner)));
    }

    function rewriteKeyword(key: string, value: unknown): [string, unknown][] {
      if (LEFT_OUT.has(key)) return [];
      if (DATA.has(key)) return [[key, value]];
      if (MAPS.has(key) && isRecord(value))
        return [[key, Object.fromEntries(Object.entries(value).map(([name, of]) => [name, rewrite(of)]))]];
      if (key !== '$ref' || typeof value !== 'string') return [[key, rewrite(value)]];
      const name = move(value);
      // A reference that leads nowhere says nothing: anything.
      return name === undefined ? [] : [[key, `#/$defs/${name}`]];
    }

    function move(pointer: string): string | undefined {
      if (names.has(pointer)) return names.get(pointer);
      const target = follow(root, pointer);
      const meaning = target === undefined ? '' : meaningOf(root, pointer);
      const name = target === undefined ? undefined : (kept.get(meaning) ?? reserve(nameIn(pointer) ?? label));
      names.set(pointer, name);
      if (name === undefined || kept.has(meaning)) return name;
      kept.set(meaning, name);
      define(name, rewrite(target) as Schema);
      return name;
    }

    const made = rewrite(root) as Schema;
    const whole = names.get('#');
    return whole === undefined ? made : { $ref: `#/$defs/${whole}` };
  };
}

/** `#/$defs/Category` → Category; undefined for a name that a library has made up, and for what is no definition. */
function nameIn(pointer: string): string | undefined {
  const name = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(pointer)?.[1];
  return name === undefined || /^_*(?:schema|intersection)?\d+$/i.test(name) ? undefined : name;
}

/** What a reference within a schema leads to (RFC 6901); undefined for nothing, and for another document. */
function follow(root: Schema, pointer: string): Schema | boolean | undefined {
  if (!/^#(?:\/|$)/.test(pointer)) return undefined;
  let found: unknown = root;
  for (const step of pointer.split('/').slice(1)) {
    const key = unescapeStep(step);
    found =
      typeof found === 'object' && found !== null && Object.hasOwn(found, key)
        ? (found as Record<string, unknown>)[key]
        : undefined;
  }
  return isRecord(found) || typeof found === 'boolean' ? found : undefined;
}

/** A step of a pointer in a URL is percent-decoded first (RFC 6901, section 6). */
function unescapeStep(step: string): string {
  let plain = step;
  try {
    plain = decodeURIComponent(step);
  } catch {
    // No library has encoded it.
  }
  return plain.replaceAll('~1', '/').replaceAll('~0', '~');
}

/**
 * Equal for what has the same name and is the same, with all that it refers to. Two names of one meaning stay two, for
 * readers.
 */
function meaningOf(root: Schema, from: string): string {
  const texts = new Map<string, string>();
  const queue = [from];
  for (let pointer = queue.pop(); pointer !== undefined; pointer = queue.pop()) {
    if (texts.has(pointer)) continue;
    const text = JSON.stringify(follow(root, pointer)) ?? '';
    texts.set(pointer, text);
    for (const [, quoted] of text.matchAll(REF)) queue.push(JSON.parse(quoted as string) as string);
  }
  return JSON.stringify([...texts]);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
