// The names of a group's tools. Two tools with the same name are an error. Otherwise a call could reach another
// operation than the one whose description the model has read.
import { idOfGroup, urlNameOf } from '../base/group-name.ts';
import { isExactList } from '../base/media-kinds.ts';
import { ANY_VERB, operationIdOf } from '../base/route-name.ts';
import { resolveReference } from '../contract/check/run.ts';
import type { Definitions, Schema } from '../contract/contract.ts';
import { isFile } from '../contract/schema/schema.ts';
import { refuseOperation } from './group-contract.ts';
import { TOOL_NAME } from './operation-settings.ts';
import type { Group, Operation } from './operations.ts';

export function toolsOf({ name: group, operations }: Pick<Group, 'name' | 'operations'>): Map<string, Operation> {
  const tools = new Map<string, Operation>();
  for (const operation of operations.values()) {
    const toolName = toolNameOf(group, operation);
    if (toolName !== undefined) tools.set(toolName, operation);
  }
  return tools;
}

/** Returns undefined for no tool. HEAD and OPTIONS cannot be tools, because their answers have no body. */
function toolNameOf(group: string, { name, verb, settings: { tool = false } }: Operation): string | undefined {
  if (tool === false || verb === 'HEAD' || verb === 'OPTIONS') return undefined;
  return typeof tool === 'string' ? tool : `${idOfGroup(urlNameOf(group))}_${operationIdOf(name)}`;
}

/** @param owners the group name by tool name, for the groups that serve already. @throws ContractError */
export function checkTools(group: Group, owners: ReadonlyMap<string, string>, file: string): void {
  const toolsSoFar = new Map<string, string>();
  for (const operation of group.operations.values()) {
    const toolName = toolNameOf(group.name, operation);
    if (toolName === undefined) continue;
    const owner = owners.get(toolName);
    const namesake = owner === undefined || owner === group.name ? toolsSoFar.get(toolName) : `group ${owner}`;
    const problem = problemOf(toolName, operation, namesake, group.contract.defs);
    if (problem !== undefined) refuseOperation(group, operation.name, problem, file);
    toolsSoFar.set(toolName, operation.name);
  }
}

/** Matches a media type or a range in `accepts` that takes JSON. */
const TAKES_JSON = /^(?:application\/json|application\/\*|\*\/\*)$/i;

function problemOf(
  toolName: string,
  { verb, settings, contract }: Operation,
  namesake: string | undefined,
  defs: Definitions,
): string | undefined {
  const cure = "write another name, such as tool: 'find_order'";
  if (namesake !== undefined) return `the tool ${toolName} is already that of ${namesake}: ${cure}`;
  if (!TOOL_NAME.test(toolName)) return `the tool would be called ${toolName}, longer than 64 characters: ${cure}`;
  if (verb === ANY_VERB) return 'no tool has every method: write a route of one method';
  if (settings.body === 'stream') return 'no tool sends a body that is a stream: write tool: false';
  const hasBody = verb !== 'GET' && verb !== 'DELETE' && contract?.data !== undefined;
  if (hasBody && isExactList(settings.accepts) && !settings.accepts.some((range) => TAKES_JSON.test(range)))
    return 'a tool sends its body as JSON, which accepts does not list: write tool: false';
  if (hasBody && !contract.dataIsOptional && mustHaveFile(contract.data, defs))
    return 'a tool sends its body as JSON, which has no files: write tool: false';
  return contract?.results.every(({ body }) => body === 'events')
    ? 'no tool returns a stream of events: write tool: false'
    : undefined;
}

/** Whether the data is a file, or one of its required fields must have one. */
function mustHaveFile(schema: Schema | undefined, defs: Definitions, seen = new Set<Schema>()): boolean {
  const target = resolveReference(schema, defs);
  if (seen.has(target)) return false;
  seen.add(target);
  const { properties = {}, required = [] } = target;
  return isFile(target) || required.some((field) => mustHaveFile(properties[field], defs, seen));
}
