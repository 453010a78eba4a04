// Reads the service file: its rules (groups/service-file.ts), and its tasks, whose code is loaded only for them.
import { errorMessage } from '../../base/failure.ts';
import type { Fields } from '../../base/values.ts';
import type { Reader } from '../../contract/reader.ts';
import { createService, type LoadedService, refuseProperty } from '../../groups/service-file.ts';
import type { GroupLoad } from './group-load.ts';

/** @throws ContractError with the line of a wrong property */
export async function readService(path: string, module: Fields, reader: Reader): Promise<LoadedService> {
  const service = createService(path, module, () => reader.readErrorBody(path));
  if (service.background === undefined) return service;
  const { readTasks } = await import('../tasks/task.ts');
  try {
    return Object.freeze({ ...service, tasks: readTasks(service.background) });
  } catch (error) {
    throw refuseProperty(path, `background: ${errorMessage(error)}`, errorMessage(error).split(':', 1)[0]);
  }
}

export function factsOfService({ folders, isEmpty, start, tasks }: LoadedService): Partial<GroupLoad> {
  const facts = Array.from(tasks?.values() ?? [], ({ name, plan, catchUp }) => ({ name, plan, catchUp }));
  return { folders, isEmpty, ...(start && { hasStart: true }), ...(tasks && { tasks: facts }) };
}
