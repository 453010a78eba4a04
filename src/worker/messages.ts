// What the supervisor and its workers say to each other over the IPC channel: one union for each direction, and the
// narrowing of what arrives. It knows the words and their shapes, not who acts on them or when.

/** A file that an import read, or looked for in vain (`'absent'`), and its state when it was read. */
export interface LoadedFile {
  readonly path: string;
  readonly fingerprint: string;
}

/** How the load of one group of the folder went. */
export interface GroupLoad {
  readonly group: string;
  /** The name in the folder. */
  readonly file: string;
  readonly ok: boolean;
  /** One line: the reason. */
  readonly error?: string;
  /** `file:line`, where known. */
  readonly at?: string;
}

export type ToWorker =
  /**
   * `files`: names in the folder, the same for all workers of a generation. `skip`: file name → reason; these ended or hung an
   * earlier worker and must not be touched.
   */
  | {
      readonly kind: 'load';
      readonly generation: number;
      readonly files: readonly string[];
      readonly skip: readonly (readonly [file: string, reason: string])[];
    }
  /** Another worker has imported this new group: so that all of them serve the same state of its file. */
  | { readonly kind: 'import'; readonly group: string }
  /** Every worker has been told to import this new group, and has said how it fared: whoever has it may answer from it. */
  | { readonly kind: 'shared'; readonly group: string }
  | { readonly kind: 'listen'; readonly port: number; readonly host: string | undefined }
  /**
   * Finish what is under way within `timeout` milliseconds, then end. `acceptFor`: no other worker accepts in its place, so
   * it goes on for as many milliseconds; null: stop accepting at once.
   */
  | { readonly kind: 'drain'; readonly timeout: number; readonly acceptFor: number | null }
  /** End now: for a worker that holds no connection. */
  | { readonly kind: 'quit' }
  /** A client's connection comes with it; the supervisor accepted it while no worker could. */
  | { readonly kind: 'connection' }
  | { readonly kind: 'ping' };

export type FromWorker =
  | { readonly kind: 'booted' }
  | { readonly kind: 'loading'; readonly file: string }
  /** Not a controller's fault: a table that is there and cannot be read. */
  | { readonly kind: 'unfit'; readonly reason: string }
  | { readonly kind: 'loaded'; readonly groups: readonly GroupLoad[]; readonly files: readonly LoadedFile[] }
  | { readonly kind: 'listening' }
  /** It has the connection that came last. */
  | { readonly kind: 'took' }
  | { readonly kind: 'listen-failed'; readonly code: string }
  /** A brand-new group was imported in place, or could not be. One that was answers nothing before it is `shared`. */
  | { readonly kind: 'imported'; readonly group: GroupLoad; readonly files: readonly LoadedFile[] }
  /** Files that were imported later than at load, by an operation when it was called. */
  | { readonly kind: 'read'; readonly files: readonly LoadedFile[] }
  /** To `import`, where there was nothing to import: it has that group, or cannot have it. */
  | { readonly kind: 'nothing-to-import'; readonly group: string }
  /** Something was thrown outside any request; it has been logged. */
  | { readonly kind: 'faulty' }
  /** What it has counted; whoever reads the metrics knows the shape. */
  | { readonly kind: 'metrics'; readonly metrics: unknown }
  | { readonly kind: 'pong' };

type Fields = Readonly<Record<string, unknown>>;

const TO_WORKER: Readonly<Record<ToWorker['kind'], (message: Fields) => boolean>> = {
  load: (m) =>
    isNumber(m.generation) &&
    isArrayOf(m.files, isString) &&
    isArrayOf(m.skip, (row) => Array.isArray(row) && row.length === 2 && row.every(isString)),
  import: (m) => isString(m.group),
  shared: (m) => isString(m.group),
  listen: (m) => isNumber(m.port) && (m.host === undefined || isString(m.host)),
  drain: (m) => isNumber(m.timeout) && (m.acceptFor === null || isNumber(m.acceptFor)),
  quit: () => true,
  connection: () => true,
  ping: () => true,
};

const FROM_WORKER: Readonly<Record<FromWorker['kind'], (message: Fields) => boolean>> = {
  booted: () => true,
  loading: (m) => isString(m.file),
  unfit: (m) => isString(m.reason),
  loaded: (m) => isArrayOf(m.groups, isGroupLoad) && isArrayOf(m.files, isLoadedFile),
  listening: () => true,
  took: () => true,
  'listen-failed': (m) => isString(m.code),
  imported: (m) => isGroupLoad(m.group) && isArrayOf(m.files, isLoadedFile),
  read: (m) => isArrayOf(m.files, isLoadedFile),
  'nothing-to-import': (m) => isString(m.group),
  faulty: () => true,
  metrics: () => true,
  pong: () => true,
};

/** Undefined for anything else: a controller may use `process.send` for its own ends. */
export function parseToWorker(message: unknown): ToWorker | undefined {
  return isKnown(message, TO_WORKER) ? (message as unknown as ToWorker) : undefined;
}

export function parseFromWorker(message: unknown): FromWorker | undefined {
  return isKnown(message, FROM_WORKER) ? (message as unknown as FromWorker) : undefined;
}

function isKnown(message: unknown, kinds: Readonly<Record<string, (message: Fields) => boolean>>): message is Fields {
  if (!isFields(message) || !isString(message.kind) || !Object.hasOwn(kinds, message.kind)) return false;
  return kinds[message.kind]?.(message) === true;
}

function isGroupLoad(value: unknown): boolean {
  return (
    isFields(value) &&
    isString(value.group) &&
    isString(value.file) &&
    typeof value.ok === 'boolean' &&
    (value.error === undefined || isString(value.error)) &&
    (value.at === undefined || isString(value.at))
  );
}

function isLoadedFile(value: unknown): boolean {
  return isFields(value) && isString(value.path) && isString(value.fingerprint);
}

function isArrayOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
