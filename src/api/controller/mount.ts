// `mount` gives all methods and paths of a group to a handler that is not written for Gatefold. The default export of a
// controller file is a mount, or the property `fallback` of the service file. groups/mount.ts checks the settings.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ControllerParams } from '../controller.ts';
import type { OperationSettings } from './operations.ts';

/** A handler of the web's own types: the function `fetch` of Hono, h3 or Elysia, or one of better-auth or tRPC. */
export type WebHandler = (request: Request, params: ControllerParams) => Response | Promise<Response>;

/** A handler of Node's own types, such as an Express application. `next()` is a 404, and `next(error)` is a 500. */
export type NodeHandler = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void;

export interface MountSettings
  extends Pick<
    OperationSettings,
    'access' | 'limit' | 'timeout' | 'bodyLimit' | 'bodyTimeout' | 'summary' | 'hidden' | 'unchecked'
  > {
  /**
   * With `'own'`, the handler answers OPTIONS, sets the CORS headers and checks the origin of pages by itself. Default:
   * `'own'` for `fallback` of the service file, and `'service'` for a controller.
   */
  readonly cors?: 'own' | 'service';
}

export interface NodeMountSettings extends MountSettings {
  /** Whether the path of `request.url` begins after the path of the group. Default: `false`. */
  readonly strip?: boolean;
  /**
   * Takes the socket of a WebSocket handshake, and answers it, such as by `handleUpgrade` of `ws`. Without `upgrade`, a
   * handshake is a usual GET.
   *
   * @param head bytes that came behind the handshake; mostly empty
   */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer, params: ControllerParams): unknown;
}

export type UpgradeHandler = NonNullable<NodeMountSettings['upgrade']>;

/** The default export of a controller that is a handler of its own. */
export interface Mount {
  readonly kind: 'web' | 'node';
  readonly handler: unknown;
  readonly settings: NodeMountSettings;
}

export interface MountFunction {
  (handler: WebHandler | { readonly fetch: WebHandler }, settings?: MountSettings): Mount;
  node(handler: NodeHandler, settings?: NodeMountSettings): Mount;
}

/** A global symbol, because a controller can import another copy of this package. */
const MOUNT = Symbol.for('gatefold.Mount');

const create = (kind: Mount['kind'], handler: unknown, settings: NodeMountSettings = {}): Mount =>
  Object.freeze({ [MOUNT]: true, kind, handler, settings });

/** @example export default mount(auth.handler); export default mount.node(expressApplication); */
export const mount: MountFunction = Object.assign(create.bind(undefined, 'web') as MountFunction, {
  node: create.bind(undefined, 'node'),
});

export const isMount = (value: unknown): value is Mount => Object(value)[MOUNT] === true;
