// Reads the result type of `formatError` of the service file, for the OpenAPI document. No check uses the type, so a
// service with an unsupported type loads. The document then has no schema of these bodies.
import type { Definitions, Schema } from './contract.ts';
import { createSchemaWriter } from './schema/schema.ts';
import type { SourceFiles } from './source/files.ts';
import { SourceError, Unsupported } from './source/source-error.ts';
import { findLevels } from './types/class-levels.ts';
import { createEvaluator } from './types/evaluate.ts';
import { findMember } from './types/follow.ts';
import { NO_TYPE_PARAMS } from './types/look-up.ts';
import { resolve } from './types/shape.ts';

export interface ErrorBody {
  /** The schema of an error's body; undefined when the result type is missing, unsupported, `unknown` or `any`. */
  readonly schema: Schema | undefined;
  readonly defs: Definitions;
}

const UNKNOWN_BODY: ErrorBody = { schema: undefined, defs: {} };

export function readErrorBody(path: string, files: SourceFiles): ErrorBody {
  const evaluator = createEvaluator();
  try {
    const scope = { path, module: files.read(path), load: files.load, typeParams: NO_TYPE_PARAMS };
    const [level] = findLevels('default', scope, evaluator).levels;
    const formatter = level && findMember(level, 'formatError')?.method;
    if (formatter?.node.result === undefined) return UNKNOWN_BODY;
    const shape = evaluator.evaluate(formatter.node.result, formatter.scope);
    if (resolve(shape).kind === 'any') return UNKNOWN_BODY;
    const writer = createSchemaWriter();
    const schema = writer.write(shape);
    return { schema, defs: writer.defs };
  } catch (error) {
    if (error instanceof Unsupported || error instanceof SourceError) return UNKNOWN_BODY;
    throw error;
  }
}
