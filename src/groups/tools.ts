// The tools of a handler group: the operations that agents can call (by MCP), and their names. Two tools with the same
// name are an error. Otherwise a call could reach another operation than the one whose description the model has read.
import { urlNameOf } from '../base/page-name.ts';
import { methodOf, operationIdOf, splitRouteName } from '../base/route-name.ts';
import { ContractError } from '../contract/contract-error.ts';
import { TOOL_NAME } from './operation-settings.ts';
import type { Group, Operation } from './operations.ts';

type ToolGroup = Pick<Group, 'name' | 'operations'>;

/** Returns the operations by tool name. An operation for HEAD or OPTIONS is no tool, because its answer has no body. */
export function toolsOf({ name: group, operations }: ToolGroup): Map<string, Operation> {
  const tools = [...operations.values()].filter(
    ({ name, settings: { tool = false } }) => tool !== false && !/^(?:HEAD|OPTIONS)$/.test(verbOf(name)),
  );
  return new Map(
    tools.map((operation) => {
      const { tool } = operation.settings;
      return [typeof tool === 'string' ? tool : `${urlNameOf(group)}_${operationIdOf(operation.name)}`, operation];
    }),
  );
}

function verbOf(operation: string): string {
  return methodOf(operation) ?? splitRouteName(operation)?.verb ?? '';
}

/**
 * @param owners the group name by tool name, for the groups that serve already
 * @throws ContractError when two tools have one name, or when an operation cannot be a tool
 */
export function checkTools(group: Group, owners: ReadonlyMap<string, string>, file: string): void {
  const refuse = (operation: Operation, problem: string): never => {
    throw new ContractError(group.contract.operations.get(operation.name)?.at ?? file, `${operation.name}: ${problem}`);
  };
  const toolsSoFar = new Map<string, string>();
  for (const operation of group.operations.values()) {
    const [[toolName] = []] = toolsOf({ name: group.name, operations: new Map([[operation.name, operation]]) });
    if (toolName === undefined) continue;
    const owner = owners.get(toolName);
    const namesake = owner === undefined || owner === group.name ? toolsSoFar.get(toolName) : `group ${owner}`;
    const problem = problemOf(toolName, operation, namesake);
    if (problem !== undefined) refuse(operation, problem);
    toolsSoFar.set(toolName, operation.name);
    if (operation.facts?.hasOnlyEvents) refuse(operation, 'no tool returns a stream of events: write tool: false');
  }
}

function problemOf(toolName: string, { settings }: Operation, namesake: string | undefined): string | undefined {
  const cure = "write another name, such as tool: 'find_order'";
  if (namesake !== undefined) return `the tool ${toolName} is already that of ${namesake}: ${cure}`;
  if (!TOOL_NAME.test(toolName)) return `the tool would be called ${toolName}, longer than 64 characters: ${cure}`;
  return settings.body === 'stream' ? 'no tool sends a body that is a stream: write tool: false' : undefined;
}
