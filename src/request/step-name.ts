// Names the step at which a request ended. In development, a refusal has the name in its `detail`.
import type { Exchange } from './exchange.ts';

/** Key: the name of the function of a step in steps.ts. Value: the name of the step in CONTROLLERS.md. */
const STEP_NAMES: Readonly<Record<string, string>> = {
  checkOrigin: 'origin',
  identifyAuthorization: 'key',
  identifyByEitherHeader: 'key',
  checkRate: 'rate',
  checkRights: 'rights',
  findOperation: 'group and operation',
  timedStep: 'access',
  checkLimit: 'limit',
  readData: 'body',
  checkTypes: 'types',
  callGuardedOperation: 'operation',
};

/** Returns the step that began last. `request` comes before all steps, and `row` is the search for the route. */
export function stepOf({ steps, stepsBegun, resolvedPath }: Exchange): string {
  // The build may have added digits to the name of a function: `readData2` for `readData`.
  const names = steps.slice(0, stepsBegun).flatMap(({ name }) => STEP_NAMES[name.replace(/\d+$/, '')] ?? []);
  return names.at(-1) ?? (resolvedPath === undefined ? 'request' : 'row');
}
