// Compiles a JSON Schema (the part of 2020-12 that schema.ts writes) into a check. A check collects the mistakes of a
// value. The check also converts the value:
// - the text of a query to a number
// - the text of a date to a Date
// - an object to its declared fields
// A check copies what it converts and never changes the value itself, because a union tries one value with several
// checks.

import type { Schema } from '../contract.ts';
import { IS_FILE } from '../schema/schema.ts';
import { LIMITS } from '../types/limits.ts';
import { MESSAGES } from './messages.ts';
import { type Check, type Compiler, resolveReference } from './run.ts';
import { compileArray, compileObject } from './structures.ts';
import { compileUnion } from './unions.ts';
import { compileLiterals, compileNumber, compileString } from './values.ts';

/** Keywords that only the document uses. The check ignores them. */
const ANNOTATIONS = new Set(['description', 'title', 'default', 'deprecated', 'examples', 'contentMediaType']);
const CHECKED_KEYWORDS = new Set(
  `type enum const minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf items
  prefixItems minItems maxItems uniqueItems properties required additionalProperties
  patternProperties anyOf not $ref`.split(/\s+/),
);

/**
 * Creates a compiler for schemas that refer to `defs`. Its method `compile` throws when no check implements a keyword,
 * so that a constraint is never ignored.
 */
export function createCompiler(defs: Readonly<Record<string, Schema>>, readsText: boolean): Compiler {
  const compiled = new Map<unknown, Check>();

  /**
   * Compiles each schema once. A named schema, and a schema that contains itself, gets a check that also counts the
   * depth of the value.
   */
  function compile(schema: Schema): Check {
    const key = schema.$ref ?? schema;
    const cached = compiled.get(key);
    if (cached !== undefined) return cached;
    let target: Check | undefined;
    const countDepth: Check = (value, run) => {
      if (run.depth >= LIMITS.depth) return run.report(MESSAGES.tooDeep);
      run.depth++;
      const converted = (target as Check)(value, run);
      run.depth--;
      return converted;
    };
    // While this schema is compiled, references to the schema itself get `countDepth` as their check.
    compiled.set(key, countDepth);
    target = compileNew(schema);
    if (key === schema) compiled.set(key, target);
    return compiled.get(key) as Check;
  }

  function compileNew(schema: Schema): Check {
    for (const keyword of Object.keys(schema)) {
      if (!CHECKED_KEYWORDS.has(keyword) && !ANNOTATIONS.has(keyword))
        throw new Error(`No check implements the JSON Schema keyword ${keyword}`);
    }
    if (schema.$ref !== undefined) return compile(resolve(schema));
    if (schema.not !== undefined) return (_, run) => run.report(MESSAGES.mustBeLeftOut);
    if (schema.anyOf !== undefined) return compileUnion(schema.anyOf, compiler);
    if (schema.enum !== undefined) return compileLiterals(schema.enum, readsText);
    if ('const' in schema) return compileLiterals([schema.const], readsText);
    if (Array.isArray(schema.type)) {
      const parts = schema.type.map((type: string) => (type === 'null' ? { type } : { ...schema, type }));
      return compileUnion(parts, compiler);
    }
    if (Object.hasOwn(schema, IS_FILE)) return checkFile;
    return compileType(schema);
  }

  function compileType(schema: Schema): Check {
    switch (schema.type) {
      case undefined:
        return (value) => value;
      case 'null':
        return compileLiterals([null], false);
      case 'boolean':
        return readsText ? parseBoolean : checkBoolean;
      case 'string':
        return compileString(schema);
      case 'number':
      case 'integer':
        return compileNumber(schema, readsText);
      case 'array':
        return compileArray(schema, compiler);
      case 'object':
        return compileObject(schema, compiler);
      default:
        throw new Error(`No check implements the JSON Schema type ${String(schema.type)}`);
    }
  }

  const resolve = (schema: Schema): Schema => resolveReference(schema, defs);
  const compiler: Compiler = { compile, resolve, readsText };
  return compiler;
}

const checkBoolean: Check = (value, run) => (typeof value === 'boolean' ? value : run.report(MESSAGES.notBoolean));
const parseBoolean: Check = (value, run) =>
  value === 'true' ? true : value === 'false' ? false : checkBoolean(value, run);
const checkFile: Check = (value, run) => (value instanceof Blob ? value : run.report(MESSAGES.notFile));
