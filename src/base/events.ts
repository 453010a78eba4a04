// Every log event with its facts, by level, so that a wrong event or fact is a type error. docs/OPERATING.md explains
// each event, and a test compares both lists.
import type { LoadErrorCode } from './load-refusal.ts';

export interface ErrorFacts {
  error: string;
  error_name?: string;
  error_cause_code?: string;
  stack?: string;
  cause?: string;
}

export interface LoadFailureFacts {
  /** The name of the group, or `service` for the service file. */
  group: string;
  file: string;
  code: LoadErrorCode | undefined;
  error: string | undefined;
  at: string | undefined;
  column: number | undefined;
}

/** The id of the request that a log line belongs to, and the ids of its trace when a trace is known. */
export interface RequestIds {
  request_id: string;
  trace_id?: string | undefined;
  span_id?: string | undefined;
}

export interface OperationFacts extends RequestIds {
  group: string;
  operation: string;
}

/** The facts of a request. `page` is the group that served the request, as `servingPage` (group-name.ts) has it. */
interface RequestFacts extends RequestIds {
  page: string;
  operation: string;
}

interface RefusalFacts extends RequestFacts {
  credential?: string;
  status: number;
  error_code: string;
}

/** A line of `params.log`. The controller adds fields of its own. */
interface MessageFacts extends OperationFacts {
  message: string;
  [field: string]: unknown;
}

interface TaskFacts {
  task: string;
  due_at?: string;
}

/** A line of the `log` of a task, or of `start`. The code adds fields of its own. */
interface TaskMessageFacts {
  message: string;
  task: string;
  [field: string]: unknown;
}

interface SignInFacts extends RequestIds {
  provider: string;
  application: string;
}

/** The id of a process, or undefined when the process did not start. */
type Pid = number | undefined;

interface ExitFacts {
  worker: Pid;
  /** The number of the worker's generation: the set of workers that loaded the same state of the controllers folder. */
  generation: number;
  reason: string;
  /** The file that the worker was importing; undefined when it imported none. */
  file: string | undefined;
}

interface CertificateOrderFacts {
  domains: readonly string[];
  directory: string;
  challenge: string | undefined;
}

interface CertificateExpiryFacts {
  names: readonly string[];
  expires: string;
  days_left: number;
  to_do: string;
}

export interface LogEvents {
  debug: {
    'certificate-ordered-elsewhere': { domains: readonly string[] };
    'folder-unreadable': ErrorFacts;
    'identity-key-unusable': { provider: string; reason: string };
    'identity-keys-loaded': { provider: string; keys: number };
    'new-group-withheld': { worker: number | undefined; file: string | undefined; reason: string };
    'operation-finished-late': OperationFacts;
    'renewal-information-failed': { error: string };
  };

  info: {
    'certificate-loaded': { file: string; names: readonly string[]; issuer: string; expires: string; reloads: number };
    'certificate-obtained': { domains: readonly string[]; issuer: string; expires: string };
    'certificate-ordered': CertificateOrderFacts & { reason: string };
    'channels-of-one-machine': { channel: string; effect: string };
    'credentials-loaded': { file: string; missing: boolean; rows: number; reloads: number };
    'docs-served': { document: string; page: string; access: string; setting: string };
    'contracts-running': { hint: string };
    'contracts-written': { types: number; took_ms: number };
    'generation-serving': { generation: number; cause: string; groups: number; took_ms: number };
    'identity-providers-changed': { providers: readonly string[]; refused: number };
    'identity-registered': SignInFacts;
    'identity-signed-in': SignInFacts;
    'launcher-exited': { launcher: number };
    'operation-info': MessageFacts;
    'operation-undocumented': { file: string; reason: string };
    'operations-port-opened': { host: string; port: number };
    /** request/access-log.ts builds the text of this line itself, for speed, because each request has such a line. */
    request: RequestFacts & {
      method: string;
      path: string;
      status: number;
      duration_ms: number;
      bytes: number;
      credential?: string;
      user?: string;
      tool?: string;
    };
    'request-refused': RefusalFacts & { reason: string };
    stopped: object;
    stopping: { signal: string };
    'store-back': { away_seconds: number };
    'stream-ended-early': RequestFacts & ErrorFacts;
    'task-info': TaskMessageFacts;
    'tasks-resumed': object;
    'trace-export-restored': { spans_dropped: number };
    'traces-disabled': { reason: string };
    'traces-on': { endpoint: string; sampler: string };
    'trial-worker-exited': ExitFacts;
    'worker-replaced': { generation: number; workers: readonly Pid[] };
  };

  warn: {
    'contracts-warning': { warning: string };
    'background-work-given-up': OperationFacts;
    'certificate-awaited': { domains: readonly string[]; directory: string; challenge: string; effect: string };
    'certificate-expires-soon': CertificateExpiryFacts;
    'controller-not-disposed': ErrorFacts & { group: string };
    'credentials-literal-rows': { count: number; names: readonly string[] };
    'credentials-row-quarantined': { name: string; reason: string } | { more: number };
    'env-file-changed': { file: string; effect: string };
    'file-ignored': { file: string; reason: string };
    'folder-restored': { folder: string };
    'folder-unstable': { file: string; effect: string };
    'generation-file-not-written': { file: string; reason: string };
    'group-shadowed': { group: string; path: string; effect: string };
    'header-dropped': RequestIds & { header: string; reason: string } & (
        | { page: string; operation: string }
        | { error_code: string }
      );
    'identity-keys-unavailable': ErrorFacts & { provider: string; serving_kept_keys: boolean };
    'identity-provider-refused': { provider: string; reason: string };
    'identity-providers-unreadable': { error: string; keeping: number };
    /** base/log-writer.ts writes this line itself: the log could drop the line like the lines that it counts. */
    'log-lines-dropped': { lines: number };
    'method-ignored': { file: string; reason: string };
    'operation-failed-late': OperationFacts & ErrorFacts;
    'operation-unchecked': { file: string; reason: string };
    'operation-warning': MessageFacts;
    'package-version-differs': { folder: string; version: string; running: string; to_do: string };
    'replacement-rejected': { generation: number; groups: readonly LoadFailureFacts[]; effect: string };
    'result-type-mismatched': RequestIds & { group: string; operation: string; pointer: string; message: string };
    'result-unfiltered': { file: string; reason: string };
    'secret-on-command-line': { flag: string };
    'service-mark-not-kept': { file: string; reason: string; effect: string };
    'service-not-closed': ErrorFacts;
    'service-not-stopped': ErrorFacts;
    'stop-forced': { signal: string };
    /** The bell is the notification of the database about a change of the store. */
    'store-bell-missing': { effect: string };
    'store-clock-differs': { store_seconds_ahead: number; effect: string };
    'store-copy-unreadable': { reason: string; file: string; effect: string };
    'store-history-changed': { rows: number };
    'store-refused': { reason: string };
    'store-revocation-restored': { id: string };
    'store-revocations-lost': { count: number; effect: string };
    'store-rotation-restored': { id: string };
    'store-rotations-lost': { count: number; names: readonly string[]; effect: string };
    'store-rows-missing': { count: number; names: readonly string[] };
    'store-rows-older': { count: number; names: readonly string[] };
    'store-table-fills': { bytes: number; limit: number };
    'store-unencrypted': { effect: string };
    'task-clock-set-back': TaskFacts;
    'task-interrupted': TaskFacts & { worker: Pid; retry_in_ms: number };
    'task-lease-lost': TaskFacts & { worker: Pid };
    'task-skipped': TaskFacts & { running_since: string };
    'task-warning': TaskMessageFacts;
    'tools-absent': { reason: string };
    'trace-export-failed': { reason: string; spans_dropped: number };
    'trace-spans-lost': { spans_dropped: number };
    'trace-variable-ignored': { variable: string; reason: string };
    'traces-off': { reason: string };
    'variable-ignored': { variable: string; setting: string };
    'worker-faulty': { worker: Pid; effect: string };
    'writable-by-everyone': { path: string; effect: string };
  };

  error: {
    'background-work-failed': OperationFacts & ErrorFacts;
    'certificate-expired': CertificateExpiryFacts;
    'certificate-order-failed': CertificateOrderFacts & {
      error: string;
      type?: string;
      to_do: string;
      next_attempt: string;
    };
    'certificate-reload-failed': { error: string; effect: string };
    'clock-wrong': { to_do: string } & (
      | { names: readonly string[]; valid_from: string }
      | { seconds: number; by: string }
    );
    'credentials-reload-failed': { error: string; rows_still_live: number };
    'inspector-not-opened': { host: string; port: number };
    'error-format-failed': ErrorFacts & RequestIds & { error_code: string };
    'folder-missing': { folder: string; reason: string; effect: string };
    'public-dir-refused': { dir: string; error: string; effect: string };
    'generation-degraded': { generation: number; groups: readonly string[] };
    'generation-rejected': { generation: number; cause: string; effect: string } & (
      | LoadFailureFacts
      | { error: string }
    );
    'group-not-loadable': LoadFailureFacts;
    'operation-error': MessageFacts;
    'operations-answer-failed': ErrorFacts;
    'operations-port-failed': ErrorFacts;
    'request-failed': RefusalFacts & ErrorFacts;
    'service-not-loadable': LoadFailureFacts;
    'session-key-unusable': { error: string };
    'store-away': { reason: string; age_seconds: number | null };
    'store-host-exited': { code: number | null; signal: string | null; error: string };
    'store-table-full': { bytes: number; limit: number; rows_left_out: number; effect: string };
    'store-too-old': { effect: string };
    'store-unusable': { reason: string };
    'start-failed': ErrorFacts & { retry_in_ms: number };
    'stream-failed': RequestFacts & ErrorFacts;
    'supervisor-exception': ErrorFacts;
    'supervisor-step-failed': { error: string };
    'task-error': TaskMessageFacts;
    'task-failed': TaskFacts & ErrorFacts & { worker: Pid; retry_in_ms?: number };
    'tasks-paused': { reason: string; effect: string };
    'uncaught-exception': ErrorFacts & { origin: string; at?: string } & (RequestIds | { request_id?: never });
    'worker-died': ExitFacts & { last_request?: string; last_request_id?: string; last_request_at?: string };
    'workers-still-running': { workers: readonly Pid[] };
  };
}
