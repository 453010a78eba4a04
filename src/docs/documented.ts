// The parts of the groups and of the service file that the documents show. A test or another command can make documents
// of these parts, without a loaded folder.
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
