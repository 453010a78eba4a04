// The parts of groups and of the service file that documents show. So no document needs a loaded folder.
import type { Group, Operation } from '../groups/operations.ts';
import type { LoadedService } from '../groups/service-file.ts';

export interface DocumentedGroup extends Pick<Group, 'name' | 'routes' | 'contract'> {
  readonly operations: ReadonlyMap<string, DocumentedOperation>;
  readonly strictRoutes?: Group['strictRoutes'];
}

export type DocumentedOperation = Pick<Operation, 'name' | 'method' | 'settings'>;

export type DocumentedService = Pick<
  LoadedService,
  'authenticate' | 'securitySchemes' | 'keyHeader' | 'formatError' | 'errorBody'
>;

export interface DocumentInfo {
  readonly title: string;
  readonly version: string;
  readonly description?: string | undefined;
}
