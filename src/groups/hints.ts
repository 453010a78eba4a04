// What somebody has probably meant to answer and does not: a file whose name is nearly right, a method that is nearly
// an operation. Silence, or the answer of `index` with 200, is all that its author sees otherwise. Told once, and again
// when it has changed.
import { describeError, type Log } from '../base/log.ts';
import { splitRouteName, VERB_OPERATIONS } from '../base/route-name.ts';
import { findLookAlikes } from './look-alikes.ts';
import type { Group } from './operations.ts';
import type { GroupLoad } from './registry.ts';

const OPERATION_NAME = /^[a-z][A-Za-z0-9]*$/;

/** For the report of a group that has loaded. */
export function hintsOf(
  group: Pick<Group, 'unexposed' | 'operations' | 'contract'>,
): Pick<GroupLoad, 'hints' | 'unchecked'> {
  const hints = methodHints(group);
  const unchecked = uncheckedIn(group);
  return { ...(hints.length === 0 ? {} : { hints }), ...(unchecked.length === 0 ? {} : { unchecked }) };
}

/**
 * Operations whose source is not followed, so that their types could not be a check; those that say so themselves are
 * left out.
 */
function uncheckedIn({ operations, contract }: Pick<Group, 'operations' | 'contract'>): string[] {
  return Array.from(contract.operations.values()).flatMap(({ name, at, unchecked }) => {
    const isSilent = at !== undefined || unchecked === undefined || operations.get(name)?.settings.unchecked === true;
    return isSilent ? [] : [`${name}: ${unchecked}`];
  });
}

function methodHints({ unexposed }: Pick<Group, 'unexposed'>): string[] {
  return unexposed.flatMap(({ name, reason }) => {
    const verb = name.toUpperCase();
    const isRoute = splitRouteName(name) !== undefined;
    if (reason === 'it is a field and not a method' && (OPERATION_NAME.test(name) || isRoute))
      return [`${name}: make it a method, ${isRoute ? `'${name}'` : name}() { … }, or private`];
    if (reason.startsWith('its name is not') && VERB_OPERATIONS.has(verb))
      return [`${name}: rename it to ${VERB_OPERATIONS.get(verb)} or '${verb}', or begin it with _`];
    const better = operationNameOf(name);
    return reason.startsWith('its name is not') && better !== undefined
      ? [`${name}: rename it to ${better}, or begin it with _`]
      : [];
  });
}

/** `find_all`, `FindAll` → `findAll` */
function operationNameOf(name: string): string | undefined {
  const camel = name.replace(/[^A-Za-z0-9]+([A-Za-z0-9]?)/g, (_, next: string) => next.toUpperCase());
  const better = camel.charAt(0).toLowerCase() + camel.slice(1);
  return OPERATION_NAME.test(better) ? better : undefined;
}

export interface Hints {
  /** The groups that serve from now on. */
  tell(loads: Iterable<GroupLoad>): void;
}

export function createHints(dir: string, log: Log): Hints {
  let told = new Set<string>();
  return {
    tell(groups) {
      const loads = [...groups];
      const now = new Set<string>();
      const tellOnce = (file: string, what: string, say: () => void) => {
        now.add(`${file}\n${what}`);
        if (!told.has(`${file}\n${what}`)) say();
      };
      for (const { file, reason, onPurpose } of lookAlikes(dir, log, loads)) {
        if (!onPurpose) tellOnce(file, reason, () => log.warn('file-ignored', { file, reason }));
      }
      for (const { file, hints = [], unchecked = [] } of loads) {
        for (const hint of hints) tellOnce(file, hint, () => log.warn('method-ignored', { file, hint }));
        for (const reason of unchecked) tellOnce(file, reason, () => log.warn('operation-unchecked', { file, reason }));
      }
      told = now;
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
