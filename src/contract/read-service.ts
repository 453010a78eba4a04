// Reads the schema of the bodies that `formatError` of a service file returns, for the OpenAPI document. The values of
// these bodies are never checked, so a type that is not understood is no error: the document then has no schema.
import type { Schema } from './contract.ts';
import { createSchemaWriter } from './schema/schema.ts';
import { type TypeFiles, UnreadableFile } from './source/files.ts';
import { docResult } from './source/js-types.ts';
import { Unsupported } from './source/source-error.ts';
import { findLevels, findMember } from './types/class-levels.ts';
import { createEvaluator } from './types/evaluate.ts';
import { NO_PARAMS } from './types/look-up.ts';
import { resolve } from './types/shape.ts';

export interface ErrorBody {
  /** The schema of a body; undefined when `formatError` has no result type, or one that is not understood. */
  readonly schema: Schema | undefined;
  /** The definitions to which the schema refers. */
  readonly defs: Readonly<Record<string, Schema>>;
}

const UNKNOWN: ErrorBody = { schema: undefined, defs: {} };

export function readErrorBody(path: string, files: TypeFiles): ErrorBody {
  const evaluator = createEvaluator();
  try {
    const [level] = findLevels(
      'default',
      { path, module: files.read(path), load: files.load, typeParams: NO_PARAMS },
      evaluator,
    ).list;
    const formatter = level && findMember(level, 'formatError')?.method;
    if (formatter === undefined) return UNKNOWN;
    const { node, doc, at, scope } = formatter;
    const result = node.result ?? (/\.[mc]?js$/.test(scope.path) ? docResult(doc, at) : undefined);
    if (result === undefined) return UNKNOWN;
    const shape = evaluator.evaluate(result, scope);
    if (resolve(shape).kind === 'any') return UNKNOWN;
    const writer = createSchemaWriter();
    const schema = writer.write(shape);
    return { schema, defs: writer.defs };
  } catch (error) {
    if (error instanceof Unsupported || error instanceof UnreadableFile) return UNKNOWN;
    throw error;
  }
}
