// Compiles a JSON Schema into a check, by the keywords that schema.ts writes. A check collects the mistakes of a value,
// and returns the value as its type says: `"7"` from a query becomes 7, and an object loses its undeclared fields.
// A check never changes the value itself, because the check of a union gives one value to the checks of several parts.

import type { Definitions, Schema } from '../contract.ts';
import { IS_FILE } from '../schema/schema.ts';
import { LIMITS } from '../types/check-cost.ts';
import { FAULTS } from './messages.ts';
import { type Check, type Compiler, resolveReference } from './run.ts';
import { compileArray, compileObject } from './structures.ts';
import { compileUnion } from './unions.ts';
import { compileLiterals, compileNumber, compileString } from './values.ts';

/** Keywords that only the OpenAPI document uses. */
const DOCUMENT_KEYWORDS = new Set(['description', 'title', 'default', 'deprecated', 'examples', 'contentMediaType']);
const CHECKED_KEYWORDS = new Set(
  `type enum const minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf items
  prefixItems minItems maxItems uniqueItems properties required additionalProperties patternProperties anyOf not
  $ref`.split(/\s+/),
);

/**
 * Creates a compiler for schemas that refer to `defs`. Its method `compile` throws when no check implements a keyword,
 * so that a constraint is never ignored.
 *
 * @param parsesText see `Compiler`
 * @param defaults the compiler for the defaults of fields; `true` for this one. Without it, no default is filled in
 */
export function createCompiler(defs: Definitions, parsesText: boolean, defaults?: Compiler | true): Compiler {
  const compiled = new Map<unknown, Check>();

  /**
   * Compiles each schema once. A value can be nested without end only in a named schema, or in a schema that contains
   * itself. The checks of these two kinds of schemas also count the depth of the value.
   */
  function compile(schema: Schema): Check {
    const key = schema.$ref ?? schema;
    const cached = compiled.get(key);
    if (cached !== undefined) return cached;
    let target: Check | undefined;
    const countDepth: Check = (value, run) => {
      if (run.depth >= LIMITS.depth) return run.report(FAULTS.tooDeep);
      run.depth++;
      const converted = (target as Check)(value, run);
      run.depth--;
      return converted;
    };
    // While a schema that contains itself is being compiled, `compile` is called for it again, and finds this check.
    compiled.set(key, countDepth);
    target = compileNew(schema);
    if (key === schema) compiled.set(key, target);
    return compiled.get(key) as Check;
  }

  function compileNew(schema: Schema): Check {
    for (const keyword of Object.keys(schema)) {
      if (!CHECKED_KEYWORDS.has(keyword) && !DOCUMENT_KEYWORDS.has(keyword))
        throw new Error(`No check implements the JSON Schema keyword ${keyword}`);
    }
    if (schema.$ref !== undefined) return compile(resolve(schema));
    if (schema.not !== undefined) return (_, run) => run.report(FAULTS.mustBeLeftOut);
    if (schema.anyOf !== undefined) return compileUnion(schema.anyOf, compiler);
    if (schema.enum !== undefined) return compileLiterals(schema.enum, parsesText);
    if ('const' in schema) return compileLiterals([schema.const], parsesText);
    if (Array.isArray(schema.type)) {
      const parts = schema.type.map((type: string) => (type === 'null' ? { type } : { ...schema, type }));
      return compileUnion(parts, compiler);
    }
    if (Object.hasOwn(schema, IS_FILE)) return checkFile;
    switch (schema.type) {
      case undefined:
        return (value) => value;
      case 'null':
        return compileLiterals([null], false);
      case 'boolean':
        return parsesText ? parseBoolean : checkBoolean;
      case 'string':
        return compileString(schema);
      case 'number':
      case 'integer':
        return compileNumber(schema, parsesText);
      case 'array':
        return compileArray(schema, compiler);
      case 'object':
        return compileObject(schema, compiler);
      default:
        throw new Error(`No check implements the JSON Schema type ${String(schema.type)}`);
    }
  }

  const resolve = (schema: Schema): Schema => resolveReference(schema, defs);
  const compiler: Compiler = {
    ...{ compile, resolve, parsesText },
    get forDefaults() {
      return defaults === true ? compiler : defaults;
    },
  };
  return compiler;
}

const checkBoolean: Check = (value, run) => (typeof value === 'boolean' ? value : run.report(FAULTS.notBoolean));
const parseBoolean: Check = (value, run) =>
  value === 'true' ? true : value === 'false' ? false : checkBoolean(value, run);
const checkFile: Check = (value, run) => (value instanceof Blob ? value : run.report(FAULTS.notFile));
