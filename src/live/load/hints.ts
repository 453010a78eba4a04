// Logs files and methods that were probably meant to answer requests but do not: `userController.ts`, or a method
// `find_all`. Without a hint, the author sees only a 404, or a 200 from the operation `index`. A hint is logged once.
import { describeError, type Log } from '../../base/log.ts';
import { type Group, OPERATION_NAME } from '../../groups/operations.ts';
import { toolsOf } from '../../groups/tools.ts';
import type { GroupLoad } from './group-load.ts';
import { findLookAlikes } from './look-alikes.ts';

export function hintsOf(
  group: Pick<Group, 'name' | 'unexposed' | 'operations'>,
): Pick<GroupLoad, 'hints' | 'unchecked' | 'unfiltered' | 'tools'> {
  const hints = methodHints(group);
  const unchecked = uncheckedOperations(group);
  const unfiltered = Array.from(group.operations.values()).flatMap(({ name, unfilteredReason: reason }) =>
    reason === undefined ? [] : [`${name}: ${reason}`],
  );
  const tools = toolsOf(group).size;
  return {
    ...(hints.length === 0 ? {} : { hints }),
    ...(unchecked.length === 0 ? {} : { unchecked }),
    ...(unfiltered.length === 0 ? {} : { unfiltered }),
    ...(tools === 0 ? {} : { tools }),
  };
}

function uncheckedOperations({ operations }: Pick<Group, 'operations'>): string[] {
  return Array.from(operations.values()).flatMap(({ name, settings, facts }) => {
    const reason = facts?.isFound === true || settings.unchecked === true ? undefined : facts?.uncheckedReason;
    return reason === undefined ? [] : [`${name}: ${reason}`];
  });
}

/** Returns the operations of a group, and those whose documentation lacks something. */
export function describeOperations({
  operations,
  contract,
}: Pick<Group, 'operations' | 'contract'>): Pick<GroupLoad, 'operationNames' | 'undocumented'> {
  const undocumented = Array.from(contract.operations.values()).flatMap(({ name, undocumentedReason, schemaGaps }) =>
    [undocumentedReason, schemaGaps].flatMap((reason) => (reason === undefined ? [] : [`${name}: ${reason}`])),
  );
  return { operationNames: [...operations.keys()], undocumented };
}

function methodHints({ unexposed }: Pick<Group, 'unexposed'>): string[] {
  return unexposed.flatMap(({ name, reason }) => {
    const isField = reason === 'it is a field and not a method';
    const isHint = reason.startsWith('its name is not') || (isField && OPERATION_NAME.test(name));
    return isHint ? [`${name}: ${reason}; begin it with _ if it is no operation`] : [];
  });
}

export interface Hints {
  /** Logs the new hints. @param loads the outcomes of loading all groups that serve from now on */
  report(loads: Iterable<GroupLoad>): void;
}

/** @param needsTools whether the setting MCP is on, which has no effect without a tool */
export function createHints(dir: string, log: Log, needsTools = false): Hints {
  let reportedKeys = new Set<string>();
  return {
    report(groupLoads) {
      const loads = [...groupLoads];
      const currentKeys = new Set<string>();
      const reportOnce = (file: string, text: string, writeLine: () => void) => {
        const key = `${file}\n${text}`;
        currentKeys.add(key);
        if (!reportedKeys.has(key)) writeLine();
      };
      for (const { file, reason } of lookAlikes(dir, log, loads))
        reportOnce(file, reason, () => log.warn('file-ignored', { file, reason }));
      let toolCount = 0;
      for (const { file, hints = [], unchecked = [], unfiltered = [], undocumented = [], tools = 0 } of loads) {
        toolCount += tools;
        for (const hint of hints) reportOnce(file, hint, () => log.warn('method-ignored', { file, hint }));
        for (const reason of unchecked)
          reportOnce(file, reason, () => log.warn('operation-unchecked', { file, reason }));
        for (const reason of undocumented)
          reportOnce(file, `document ${reason}`, () => log.info('operation-undocumented', { file, reason }));
        for (const reason of unfiltered)
          reportOnce(file, `result ${reason}`, () => log.warn('result-unfiltered', { file, reason }));
      }
      const reason = 'MCP is on and no operation has a tool: write static operations = { created: { tool: true } }';
      if (needsTools && toolCount === 0) reportOnce('', 'tools', () => log.warn('tools-absent', { reason }));
      reportedKeys = currentKeys;
    },
  };
}

function lookAlikes(dir: string, log: Log, loads: Iterable<GroupLoad>): ReturnType<typeof findLookAlikes> {
  try {
    return findLookAlikes(dir, loads);
  } catch (error) {
    log.debug('folder-unreadable', describeError(error));
    return [];
  }
}
