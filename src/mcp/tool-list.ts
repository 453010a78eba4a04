// Describes the operations that are tools: the name, the description, the JSON Schemas, and hints that depend on the
// method. The texts come from doc comments, and no code interprets them.
import { urlNameOf } from '../base/page-name.ts';
import { methodOf, type Segment } from '../base/route-name.ts';
import type { OperationContract } from '../contract/contract.ts';
import type { Group, Operation } from '../groups/operations.ts';
import { toolsOf } from '../groups/tools.ts';
import type { ListedTool } from '../http/tool-calls.ts';
import { inputSchema, outputSchema } from './schemas.ts';

export interface Tool extends ListedTool {
  readonly name: string;
  /** The segments of the path after the group. */
  readonly segments: readonly Segment[];
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

/** A cache of the tools, by group. A changed group is a new object, which is not in the cache yet. */
const toolsByGroup = new WeakMap<Group, readonly Tool[]>();

/** Returns the tools of a group, in the order of its source. */
export function describeTools(group: Group): readonly Tool[] {
  const cachedTools = toolsByGroup.get(group);
  if (cachedTools !== undefined) return cachedTools;
  const order = [...group.contract.operations.keys()];
  const tools = Array.from(toolsOf(group), ([name, operation]) => describeTool(name, operation, group)).sort(
    (a, b) => order.indexOf(a.operation) - order.indexOf(b.operation),
  );
  toolsByGroup.set(group, tools);
  return tools;
}

function describeTool(name: string, operation: Operation, group: Group): Tool {
  const contract = group.contract.operations.get(operation.name);
  const urlName = urlNameOf(group.name);
  const endpoint = endpointOf(operation.name, group);
  const { access = 'anyone', summary = contract?.summary } = operation.settings;
  const path = [urlName, ...endpoint.segments.map(segmentText)].join('/');
  return {
    name,
    group: group.name,
    groupInUrl: urlName,
    operation: operation.name,
    ...endpoint,
    access,
    definition: {
      name,
      title: summary?.replace(/\.$/, ''),
      description: descriptionOf(summary, contract, `${endpoint.verb} /${path}`),
      inputSchema: inputSchema({ operation, contract, endpoint, defs: group.contract.defs }),
      outputSchema: outputSchema(contract, group.contract.defs),
      annotations: hintsOf(operation.name, endpoint.verb),
    },
  };
}

/**
 * Returns the method and the path segments that call an operation. An operation such as `publish`, which is neither a
 * route (`GET {id}`) nor in the verb table (`created`), is called by POST and its name. For `updated`, a credential
 * needs the permission for PUT. So `updated` is called by PUT, except in a strict group, which takes only POST for it.
 */
function endpointOf(name: string, { routes, strictRoutes }: Group): Pick<Tool, 'verb' | 'segments'> {
  const route = routes.find((candidate) => candidate.name === name);
  if (route !== undefined) return { verb: route.verb, segments: route.segments };
  const verb = methodOf(name);
  if (verb !== undefined) return { verb, segments: [] };
  return { verb: name === 'updated' && strictRoutes === undefined ? 'PUT' : 'POST', segments: [{ literal: name }] };
}

function descriptionOf(summary: string | undefined, contract: OperationContract | undefined, fallback: string): string {
  const texts = [summary, contract?.description, contract?.isDeprecated ? 'Deprecated.' : undefined];
  return texts.filter((text) => text !== undefined).join('\n\n') || fallback;
}

function segmentText(segment: Segment): string {
  return segment.literal ?? `{${segment.name}}`;
}

/**
 * Returns the hints for clients. The method of an operation such as `publish`, which is neither a route nor in the verb
 * table, does not show the effect of the operation. So the hint says that the operation can destroy data.
 */
function hintsOf(name: string, verb: string): object {
  const isCustom = !/^[A-Z]+(?: |$)/.test(name) && methodOf(name) === undefined;
  return {
    readOnlyHint: verb === 'GET',
    destructiveHint: isCustom || (verb !== 'GET' && verb !== 'POST'),
    idempotentHint: !isCustom && (verb === 'GET' || verb === 'PUT' || verb === 'DELETE'),
  };
}
