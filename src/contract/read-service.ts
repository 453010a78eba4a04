// Reads the result type of `formatError`, for the OpenAPI document. A service file (`controllers/service.ts`) can have
// this function, which writes the body of each error. These bodies are never checked, so a type that is not supported
// is no error: the document then has no schema of them.
import type { Schema } from './contract.ts';
import { createSchemaWriter } from './schema/schema.ts';
import { type TypeFiles, UnreadableFile } from './source/files.ts';
import { Unsupported } from './source/source-error.ts';
import { findLevels, findMember } from './types/class-levels.ts';
import { createEvaluator } from './types/evaluate.ts';
import { resultTypeOf } from './types/follow.ts';
import { NO_TYPE_PARAMS } from './types/look-up.ts';
import { resolve } from './types/shape.ts';

export interface ErrorBody {
  /** The schema of an error's body; undefined when `formatError` has no result type or an unsupported one. */
  readonly schema: Schema | undefined;
  /** The definitions to which the schema refers. */
  readonly defs: Readonly<Record<string, Schema>>;
}

const UNKNOWN_BODY: ErrorBody = { schema: undefined, defs: {} };

export function readErrorBody(path: string, files: TypeFiles): ErrorBody {
  const evaluator = createEvaluator();
  try {
    const scope = { path, module: files.read(path), load: files.load, typeParams: NO_TYPE_PARAMS };
    const [level] = findLevels('default', scope, evaluator).levels;
    const formatter = level && findMember(level, 'formatError')?.method;
    if (formatter === undefined) return UNKNOWN_BODY;
    const result = resultTypeOf(formatter);
    if (result === undefined) return UNKNOWN_BODY;
    const shape = evaluator.evaluate(result, formatter.scope);
    if (resolve(shape).kind === 'any') return UNKNOWN_BODY;
    const writer = createSchemaWriter();
    const schema = writer.write(shape);
    return { schema, defs: writer.defs };
  } catch (error) {
    if (error instanceof Unsupported || error instanceof UnreadableFile) return UNKNOWN_BODY;
    throw error;
  }
}
