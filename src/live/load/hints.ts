// Logs files and methods that were probably meant to answer requests but do not: `userController.ts`, or a method
// `find_all`. Without a hint, the author sees only a 404, or a 200 from the operation `index`. A hint is logged once.
import { describeError, type Log } from '../../base/log.ts';
import { type Group, OPERATION_NAME } from '../../groups/operations.ts';
import { toolsOf } from '../../groups/tools.ts';
import type { GroupLoad, Note } from './group-load.ts';
import { findLookAlikes } from './look-alikes.ts';

/** @param isDevelopment whether operations are named, and those that the OpenAPI document does not describe whole */
export function describeGroup(
  { name: group, unexposed, operations }: Pick<Group, 'name' | 'unexposed' | 'operations'>,
  isDevelopment: boolean,
): Pick<GroupLoad, 'operationNames' | 'notes' | 'tools'> {
  const notes: Note[] = [];
  const note = (event: Note['event'], name: string, reason: string | undefined): void => {
    if (reason !== undefined) notes.push({ event, reason: `${name}: ${reason}` });
  };
  for (const { name, reason } of unexposed) {
    const isField = reason === 'it is a field and not a method';
    if (reason.startsWith('its name is not') || (isField && OPERATION_NAME.test(name)))
      note('method-ignored', name, `${reason}; begin it with _ if it is no operation`);
  }
  for (const { name, settings, contract, unfilteredReason } of operations.values()) {
    if (contract?.at === undefined && settings.unchecked !== true)
      note('operation-unchecked', name, contract?.uncheckedReason);
    note('result-unfiltered', name, unfilteredReason);
    const { undocumentedReason, schemaGaps } = contract ?? {};
    for (const reason of isDevelopment ? [undocumentedReason, schemaGaps] : [])
      note('operation-undocumented', name, reason);
  }
  const tools = toolsOf({ name: group, operations }).size;
  return {
    ...(isDevelopment && { operationNames: [...operations.keys()] }),
    ...(notes.length > 0 && { notes }),
    ...(tools > 0 && { tools }),
  };
}

const WRITE: Readonly<Record<Note['event'], (log: Log, facts: { file: string; reason: string }) => void>> = {
  'method-ignored': (log, facts) => log.warn('method-ignored', facts),
  'operation-unchecked': (log, facts) => log.warn('operation-unchecked', facts),
  'operation-undocumented': (log, facts) => log.info('operation-undocumented', facts),
  'result-unfiltered': (log, facts) => log.warn('result-unfiltered', facts),
};

/** @param needsTools whether the setting MCP is on, which has no effect without a tool */
export function createHints(dir: string, log: Log, needsTools = false) {
  let reportedKeys = new Set<string>();
  return {
    /** Logs the new hints. @param groupLoads the outcomes of loading all groups that serve from now on */
    report(groupLoads: Iterable<GroupLoad>): void {
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
      for (const { file, notes = [], tools = 0 } of loads) {
        toolCount += tools;
        for (const { event, reason } of notes)
          reportOnce(file, `${event} ${reason}`, () => WRITE[event](log, { file, reason }));
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
