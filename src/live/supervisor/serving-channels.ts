// Connects the channels of the machine with the workers. The files of live/channels/ are loaded when a worker uses one.
import type { Log } from '../../base/log.ts';
import type { MachineChannels, ToMachine } from '../channels/machine.ts';
import type { WorkerHandle } from './workers/worker-handle.ts';

export class ServingChannels {
  /** Undefined while no worker has used a channel. */
  machine: MachineChannels | undefined;
  readonly #log: Log;
  readonly #hasStore: boolean;
  #loading: Promise<MachineChannels> | undefined;

  constructor(log: Log, hasStore: boolean) {
    this.#log = log;
    this.#hasStore = hasStore;
  }

  receive(worker: WorkerHandle, message: ToMachine): void {
    if (this.machine !== undefined) return this.machine.receive(worker, message);
    this.#loading ??= this.#load(message.channel);
    void this.#loading.then((machine) => machine.receive(worker, message));
  }

  async #load(channel: string): Promise<MachineChannels> {
    const effect = 'an event reaches this machine alone; docs/CHANNELS.md has a recipe for all machines';
    if (this.#hasStore) this.#log.info('channels-of-one-machine', { channel, effect });
    const { MachineChannels } = await import('../channels/machine.ts');
    this.machine = new MachineChannels();
    return this.machine;
  }
}
