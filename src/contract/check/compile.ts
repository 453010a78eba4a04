// JSON Schema (the part of 2020-12 that schema.ts writes) → a closure that checks a value and gives it the form that
// its type says: a number for the text of a query, a Date for its text, an object without the fields that nobody
// declared. All mistakes are gathered. What was sent is never changed: a part of a union that fails must leave no
// trace.

import type { Schema } from '../contract.ts';
import { IS_FILE } from '../schema/schema.ts';
import { LIMITS } from '../types/limits.ts';
import { type Check, type Compiler, resolveReference } from './run.ts';
import { compileArray, compileObject } from './structures.ts';
import { compileUnion } from './unions.ts';
import { compileNumber, compileString, oneOf } from './values.ts';

const NOTES = new Set(['description', 'title', 'default', 'deprecated', 'examples', 'contentMediaType']);
const KEYWORDS = new Set(
  `type enum const minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf items
  prefixItems minItems maxItems uniqueItems properties required additionalProperties
  patternProperties anyOf not $ref`.split(/\s+/),
);

/** @throws Error on a keyword that it does not know: nothing stays unchecked in silence */
export function createCompiler(defs: Readonly<Record<string, Schema>>, texts: boolean): Compiler {
  const compiled = new Map<unknown, Check>();

  /**
   * A name, or a schema that contains itself by way of a union, is the same check wherever it occurs, and counts the
   * depth.
   */
  function compile(schema: Schema): Check {
    const key = schema.$ref ?? schema;
    const known = compiled.get(key);
    if (known !== undefined) return known;
    let target: Check | undefined;
    const counted: Check = (value, run) => {
      if (run.depth >= LIMITS.depth) return run.wrong(`is nested deeper than ${LIMITS.depth}`);
      run.depth++;
      const made = (target as Check)(value, run);
      run.depth--;
      return made;
    };
    compiled.set(key, counted);
    target = checkOf(schema);
    if (key === schema) compiled.set(key, target);
    return compiled.get(key) as Check;
  }

  function checkOf(schema: Schema): Check {
    for (const keyword of Object.keys(schema)) {
      if (!KEYWORDS.has(keyword) && !NOTES.has(keyword)) throw new Error(`the keyword ${keyword} is not known`);
    }
    if (schema.$ref !== undefined) return compile(resolve(schema));
    if (schema.not !== undefined) return (_, run) => run.wrong('must be left out');
    if (schema.anyOf !== undefined) return compileUnion(schema.anyOf as Schema[], compiler);
    if (schema.enum !== undefined) return oneOf(schema.enum as unknown[], texts);
    if ('const' in schema) return oneOf([schema.const], texts);
    if (Array.isArray(schema.type)) {
      const parts = schema.type.map((type: unknown) => (type === 'null' ? { type } : { ...schema, type }));
      return compileUnion(parts, compiler);
    }
    if (Object.hasOwn(schema, IS_FILE)) return file;
    return ofType(schema);
  }

  function ofType(schema: Schema): Check {
    switch (schema.type) {
      case undefined:
        return (value) => value;
      case 'null':
        return oneOf([null], false);
      case 'boolean':
        return texts ? textBoolean : boolean;
      case 'string':
        return compileString(schema);
      case 'number':
      case 'integer':
        return compileNumber(schema, texts);
      case 'array':
        return compileArray(schema, compiler);
      case 'object':
        return compileObject(schema, compiler);
      default:
        throw new Error(`the type ${String(schema.type)} is not known`);
    }
  }

  const resolve = (schema: Schema): Schema => resolveReference(schema, defs);
  const compiler: Compiler = { compile, resolve, texts };
  return compiler;
}

const boolean: Check = (value, run) => (typeof value === 'boolean' ? value : run.wrong('must be true or false'));
const textBoolean: Check = (value, run) => (value === 'true' ? true : value === 'false' ? false : boolean(value, run));
const file: Check = (value, run) => (value instanceof Blob ? value : run.wrong('must be a file'));
