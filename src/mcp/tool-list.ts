// Describes the operations that are tools: the name, the description, the JSON Schemas, and hints that depend on the
// method. The texts come from doc comments. No code interprets these texts. This file knows no messages.
import { groupInUrl } from '../base/page-name.ts';
import { methodOf, type Segment } from '../base/route-name.ts';
import type { OperationContract } from '../contract/contract.ts';
import type { Access } from '../controller/operations.ts';
import type { Group, Operation } from '../groups/operations.ts';
import { toolsOf } from '../groups/tools.ts';
import { inputSchema, outputSchema } from './schemas.ts';

export interface Tool {
  readonly name: string;
  readonly group: string;
  readonly page: string;
  readonly operation: string;
  readonly verb: string;
  /** The segments of the path after the group. */
  readonly segments: readonly Segment[];
  readonly access: Access;
  /** The definition, as `tools/list` sends it. */
  readonly definition: ToolDefinition;
}

export interface ToolDefinition {
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string;
  readonly inputSchema: { readonly properties: object; readonly [keyword: string]: unknown };
  readonly outputSchema: object | undefined;
  readonly annotations: object;
}

/**
 * The cache of the described tools, by group. After each change, the group is a new object, so its tools are described
 * again.
 */
const described = new WeakMap<Group, readonly Tool[]>();

/** Returns the tools of a group, in the order of its source. */
export function describeTools(group: Group): readonly Tool[] {
  const before = described.get(group);
  if (before !== undefined) return before;
  const order = [...group.contract.operations.keys()];
  const tools = Array.from(toolsOf(group), ([name, operation]) => describeTool(name, operation, group)).sort(
    (a, b) => order.indexOf(a.operation) - order.indexOf(b.operation),
  );
  described.set(group, tools);
  return tools;
}

function describeTool(name: string, operation: Operation, group: Group): Tool {
  const contract = group.contract.operations.get(operation.name);
  const page = groupInUrl(group.name);
  const place = placeOf(operation.name, group);
  const { access = 'anyone', summary = contract?.summary } = operation.settings;
  return {
    name,
    group: group.name,
    page,
    operation: operation.name,
    ...place,
    access,
    definition: {
      name,
      title: summary?.replace(/\.$/, ''),
      description: descriptionOf(
        summary,
        contract,
        [`${place.verb} /${page}`, ...place.segments.map(textOf)].join('/'),
      ),
      inputSchema: inputSchema({ operation, contract, place, defs: group.contract.defs }),
      outputSchema: outputSchema(contract, group.contract.defs),
      annotations: hintsOf(operation.name, place.verb),
    },
  };
}

/**
 * Returns the method and the segments that reach an operation. POST reaches an operation by its name in every group. In
 * a group that is not strict, any other method also reaches the operation.
 */
function placeOf(name: string, { routes, strictRoutes }: Group): Pick<Tool, 'verb' | 'segments'> {
  const route = routes.find((one) => one.name === name);
  if (route !== undefined) return { verb: route.verb, segments: route.segments };
  const verb = methodOf(name);
  if (verb !== undefined) return { verb, segments: [] };
  return { verb: name === 'updated' && strictRoutes === undefined ? 'PUT' : 'POST', segments: [{ literal: name }] };
}

function descriptionOf(
  summary: string | undefined,
  contract: OperationContract | undefined,
  otherwise: string,
): string {
  const texts = [summary, contract?.description, contract?.deprecated ? 'Deprecated.' : undefined];
  return texts.filter((text) => text !== undefined).join('\n\n') || otherwise;
}

function textOf(segment: Segment): string {
  return segment.literal ?? `{${segment.name}}`;
}

/**
 * Returns the hints for clients. The effect of an operation with a name of its own is not known. So a client has to
 * assume that the operation destroys data.
 */
function hintsOf(name: string, verb: string): object {
  const isNamed = !/^[A-Z]+(?: |$)/.test(name) && methodOf(name) === undefined;
  return {
    readOnlyHint: verb === 'GET',
    destructiveHint: isNamed || (verb !== 'GET' && verb !== 'POST'),
    idempotentHint: !isNamed && (verb === 'GET' || verb === 'PUT' || verb === 'DELETE'),
  };
}
