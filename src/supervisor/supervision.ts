// What a supervisor is given and what it can be told: the contract between it and the process that it runs in.
import type { Log } from '../base/log.ts';
import type { SecureState } from '../https/secure-state.ts';
import type { Port } from './port.ts';
import type { EarlyWorker } from './prefork.ts';
import type { SupervisorStatus } from './status.ts';
import type { WorkerProcess } from './worker-handle.ts';

export interface SupervisorOptions {
  /** How many workers serve. */
  readonly workers: number;
  readonly dir: string;
  /** Every worker of every generation shares its socket. */
  readonly port: Port;
  /** Milliseconds. */
  readonly drainTimeout: number;
  /** Milliseconds that a service which stops still accepts connections. */
  readonly acceptFor: number;
  /** The first workers, already on their way. */
  readonly early: readonly EarlyWorker[];
  readonly log: Log;
  /** What a worker needs to serve HTTPS; undefined: HTTP without TLS. */
  readonly secureState?: (() => SecureState) | undefined;
  /** What a worker has counted. */
  readonly onMetrics?: (worker: WorkerProcess, metrics: unknown) => void;
}

export interface Supervisor {
  /** Resolves when the first generation serves. @throws StartError when it cannot. */
  start(): Promise<void>;
  /** A new generation, whether or not the folder has changed. */
  renew(): void;
  /** `secureState` has changed: tells every worker. */
  secure(): void;
  /** Drains every worker; resolves when the last one is gone. */
  stop(): Promise<void>;
  /** Ends every worker at once. */
  kill(): void;
  status(): SupervisorStatus;
}
