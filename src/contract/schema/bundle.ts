// Moves the definitions of a schema to the `defs` of the controller. A validation library, such as zod, makes a JSON
// Schema with definitions of its own, in `$defs` or `definitions`. The moved definitions get names that are free in the
// `defs` of the controller. Two schemas with the same definition under the same name share one definition there.
import { attempt } from '../../base/failure.ts';
import { isObject } from '../../base/values.ts';
import type { Schema } from '../contract.ts';
import type { SchemaWriter } from './schema.ts';

/** @param label the name for a definition whose pointer gives no usable name, such as `#` or `#/$defs/__schema0` */
export type MoveDefinitions = (schema: Schema, label: string) => Schema;

const SCHEMA_MAPS = new Set(['properties', 'patternProperties', 'dependentSchemas']);
/** Keywords whose value is data and not a schema. The value may contain any key. */
const DATA_KEYWORDS = new Set(['const', 'enum', 'default', 'example', 'examples']);
/**
 * Keywords that are removed:
 * - `$schema` names the dialect. The version of the OpenAPI document already determines the dialect of all schemas.
 * - `$id` and the anchors only identify the target of a reference.
 * - `$defs` and `definitions` hold the definitions.
 * - `$dynamicRef` is a reference that is not followed. Its schema allows any value in the document. The library itself
 *   still checks the requests.
 */
const DROPPED = new Set(['$schema', '$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '$defs', 'definitions']);
/** Finds the pointers of all `$ref` in a text of JSON. */
const REF = /"\$ref":("(?:[^"\\]|\\.)*")/g;

export function createDefinitionMover({ reserve, defs }: Pick<SchemaWriter, 'reserve' | 'defs'>): MoveDefinitions {
  const namesByFullText = new Map<string, string>();

  return (root, label) => {
    /** Key: a pointer. Value: the new name of its definition. */
    const namesByPointer = new Map<string, string>();

    function rewrite(value: unknown): unknown {
      if (Array.isArray(value)) return value.map(rewrite);
      if (!isObject(value)) return value;
      return Object.fromEntries(Object.entries(value).flatMap(([key, inner]) => rewriteKeyword(key, inner)));
    }

    function rewriteKeyword(key: string, value: unknown): [string, unknown][] {
      if (DROPPED.has(key)) return [];
      if (DATA_KEYWORDS.has(key)) return [[key, value]];
      if (SCHEMA_MAPS.has(key) && isObject(value))
        return [[key, Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, rewrite(schema)]))]];
      if (key !== '$ref' || typeof value !== 'string') return [[key, rewrite(value)]];
      const name = moveTarget(value);
      // A reference without a target, or to an anchor, is dropped. Its schema then allows any value in the document.
      return name === undefined ? [] : [[key, `#/$defs/${name}`]];
    }

    function moveTarget(pointer: string): string | undefined {
      const movedName = namesByPointer.get(pointer);
      if (movedName !== undefined) return movedName;
      const target = follow(root, pointer);
      if (target === undefined) return undefined;
      const fullText = fullTextOf(root, pointer);
      const name = namesByFullText.get(fullText) ?? reserve(definitionName(pointer) ?? label);
      namesByPointer.set(pointer, name);
      if (namesByFullText.has(fullText)) return name;
      namesByFullText.set(fullText, name);
      defs[name] = rewrite(target) as Schema;
      return name;
    }

    const rewritten = rewrite(root) as Schema;
    // A schema that refers to itself by `#` has become a definition, too.
    const rootName = namesByPointer.get('#');
    return rootName === undefined ? rewritten : { $ref: `#/$defs/${rootName}` };
  };
}

/** Returns `Category` for `#/$defs/Category`, and undefined for a generated name (`__schema0`) or another pointer. */
function definitionName(pointer: string): string | undefined {
  const name = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(pointer)?.[1];
  return name === undefined || /^_*(?:schema|intersection)?\d+$/i.test(name) ? undefined : name;
}

/** Follows a reference within a schema (RFC 6901). Returns undefined without a target, and for another document. */
export function follow(root: Schema, pointer: string): Schema | boolean | undefined {
  if (!/^#(?:\/|$)/.test(pointer)) return undefined;
  let target: unknown = root;
  for (const step of pointer.split('/').slice(1)) {
    const key = unescapeStep(step);
    target = typeof target === 'object' && Object.hasOwn(Object(target), key) ? Object(target)[key] : undefined;
  }
  return isObject(target) || typeof target === 'boolean' ? target : undefined;
}

/** Decodes one step of a pointer. The percent-encoding of the URL is decoded first (RFC 6901, section 6). */
function unescapeStep(step: string): string {
  // A plain percent sign, as in `50%`, begins no encoding. The step is then used as it is.
  const decoded = attempt(() => decodeURIComponent(step), step);
  return decoded.replaceAll('~1', '/').replaceAll('~0', '~');
}

/**
 * Writes a definition, and all definitions that it refers to, as one text. Definitions with the same text are merged.
 * The text contains the pointers, so `Cat` and `Dog` stay two definitions even if their schemas are equal.
 */
function fullTextOf(root: Schema, start: string): string {
  const pointers = new Set([start]);
  const texts: string[] = [];
  // The set grows while the loop runs, and the loop also visits what was added.
  for (const pointer of pointers) {
    const text = JSON.stringify(follow(root, pointer)) ?? '';
    texts.push(pointer, text);
    for (const [, quoted] of text.matchAll(REF)) pointers.add(JSON.parse(quoted as string) as string);
  }
  return JSON.stringify(texts);
}
