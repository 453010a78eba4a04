// The types that operations.ts and protections.ts share, so that neither imports the other for them.
import type { ControllerParams } from '../api/controller.ts';

/** A method `_around`. Its argument `next` calls what the method surrounds: the next `_around`, or the operation. */
export type Around = (next: () => Promise<unknown>, data: unknown, params: ControllerParams) => unknown;

/** The methods `_before`, `_around` and `_after` of a controller and its parent classes. */
export interface Guards {
  /** The methods of the class and of all its parents, the parents' first. */
  readonly before: readonly ((data: unknown, params: ControllerParams) => unknown)[];
  /** The methods in the order in which they begin: `around` of the service file, those of the parents, of the class. */
  readonly around: readonly Around[];
  readonly after: ((result: unknown, params: ControllerParams) => unknown) | undefined;
}

/** The class or object that a module exports, and whose methods are the operations of the group. */
export interface Exported {
  readonly exported: object;
  /** The name of the export: `default`, or the name of the controller. */
  readonly exportName: string;
  /** The object, or the only instance of the class. */
  readonly controller: object;
  readonly isInstance: boolean;
  /** The holders of the methods, nearest first: the prototypes of an instance, or an object and its prototypes. */
  readonly levels: readonly { readonly className: string | undefined; readonly holder: object }[];
  readonly moduleExports: Readonly<Record<string, unknown>>;
}
