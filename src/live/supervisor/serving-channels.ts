// Connects the channels of the machine with the workers. The files of live/channels/ are loaded when a worker uses one.
import type { Log } from '../../base/log.ts';
import type { MachineChannels, ToMachine } from '../channels/machine.ts';
import type { WorkerHandle } from './workers/worker-handle.ts';

export class ServingChannels {
  /** Undefined while no worker has used a channel. */
  machine: MachineChannels | undefined;
  #loading: Promise<MachineChannels> | undefined;

  receive(worker: WorkerHandle, message: ToMachine, log: Log, hasStore: boolean): void {
    if (this.machine !== undefined) return this.machine.receive(worker, message);
    const effect = 'an event reaches this machine alone; docs/CHANNELS.md has a recipe for all machines';
    if (this.#loading === undefined && hasStore)
      log.info('channels-of-one-machine', { channel: message.channel, effect });
    this.#loading ??= import('../channels/machine.ts').then(({ MachineChannels }) => {
      this.machine = new MachineChannels();
      return this.machine;
    });
    void this.#loading.then((machine) => machine.receive(worker, message));
  }
}
