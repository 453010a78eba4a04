// Describes the operations that are tools: the name, the description, the JSON Schemas, and hints that depend on the
// HTTP method. The descriptions come from doc comments and are sent unchanged.
import { pathOfGroup, urlNameOf } from '../../base/group-name.ts';
import { methodOf, type Segment } from '../../base/route-name.ts';
import type { OperationContract } from '../../contract/contract.ts';
import type { Group, Operation } from '../../groups/operations.ts';
import { toolsOf } from '../../groups/tools.ts';
import type { ListedTool } from '../../request/tool-calls.ts';
import { inputSchema, outputSchema } from './schemas.ts';

export interface Tool extends ListedTool {
  readonly name: string;
  /** The segments of the path after the group. */
  readonly segments: readonly Segment[];
  /** The definition, as `tools/list` sends it. */
  readonly definition: { readonly inputSchema: ReturnType<typeof inputSchema>; readonly [field: string]: unknown };
}

/** A cache of the tools, by group. A changed group is a new object, which is not in the cache yet. */
const toolsByGroup = new WeakMap<Group, readonly Tool[]>();

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
  // Each operation of a group has a contract.
  const contract = group.contract.operations.get(operation.name) as OperationContract;
  const urlName = urlNameOf(group.name);
  const endpoint = endpointOf(operation.name, group);
  const { access = 'anyone', summary = contract.summary } = operation.settings;
  const path = [pathOfGroup('', urlName), ...endpoint.segments.map(segmentText)].join('/');
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
      description: descriptionOf(summary, contract, `${endpoint.verb} ${path || '/'}`),
      inputSchema: inputSchema({ operation, contract, endpoint, defs: group.contract.defs }),
      outputSchema: outputSchema(contract, group.contract.defs),
      annotations: hintsOf(operation.name, endpoint.verb),
    },
  };
}

function endpointOf(operation: string, { routes, strictRoutes }: Group): Pick<Tool, 'verb' | 'segments'> {
  const route = routes.find(({ name }) => name === operation);
  if (route !== undefined) return { verb: route.verb, segments: route.segments };
  const verb = methodOf(operation);
  if (verb !== undefined) return { verb, segments: [] };
  // Any other operation, such as `publish`, is called by POST. Only `updated` is called by PUT, because a credential
  // needs the permission for PUT. In a strict group, `updated` takes only POST.
  const isPut = operation === 'updated' && strictRoutes === undefined;
  return { verb: isPut ? 'PUT' : 'POST', segments: [{ literal: operation }] };
}

function descriptionOf(summary: string | undefined, contract: OperationContract, fallback: string): string {
  const texts = [summary, contract.description, contract.isDeprecated ? 'Deprecated.' : undefined];
  return texts.filter((text) => text !== undefined).join('\n\n') || fallback;
}

function segmentText(segment: Segment): string {
  return segment.literal ?? `{${segment.name}}${segment.suffix}`;
}

/** @param verb the HTTP method by which the operation is called */
function hintsOf(operation: string, verb: string): object {
  // POST does not show the effect of an operation such as `publish`. So the hint says that it can destroy data.
  const isCustom = !/^[A-Z]+(?: |$)/.test(operation) && methodOf(operation) === undefined;
  return {
    readOnlyHint: verb === 'GET',
    destructiveHint: isCustom || (verb !== 'GET' && verb !== 'POST'),
    idempotentHint: !isCustom && (verb === 'GET' || verb === 'PUT' || verb === 'DELETE'),
  };
}
