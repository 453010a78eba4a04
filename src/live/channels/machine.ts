// The channels of a machine, in the process of the supervisor. A worker opens a channel once, however many subscribers
// it has, and gets each event once. A worker that does not read costs this process no more than MAX_UNSENT.
import { bytesOf, EventLog } from './event-log.ts';

/** `open` asks for the events of a channel, those that are kept first. The reply to `publish` is `published`. */
export type ToMachine = { readonly channel: string; readonly keep: number } & (
  | { readonly kind: 'channel-open' }
  | { readonly kind: 'channel-publish'; readonly json: string; readonly publish: number }
);

/** `epoch` is the part of an id that no other channel has, and no other start. `last` is the newest event. */
export type FromMachine =
  | ({ readonly kind: 'channel-opened' } & Record<'channel' | 'epoch', string> & Record<'first' | 'last', number>)
  | { readonly kind: 'channel-events'; readonly channel: string; readonly first: number; readonly events: string[] }
  | { readonly kind: 'channel-published'; readonly publish: number; readonly id: string };

/** A worker as this file sees it. `onSent` is called when the system has taken the message. */
export interface ChannelWorker {
  send(message: FromMachine, socket?: undefined, onSent?: () => void): void;
}

type MachineChannel = EventLog<string> & { readonly epoch: string };

interface Reader {
  /** The number of the next event, for each channel that the worker has opened. */
  readonly next: Map<MachineChannel, number>;
  /** The length of the events that the system has not taken yet. */
  unsent: number;
  isScheduled: boolean;
}

/** The length of the events that one worker gets in one turn of the event loop, so that turns stay short. */
const MAX_A_TURN = 64 * 1024;
/** The length of events at which a worker gets no more until it has read some. */
const MAX_UNSENT = 4 * 1024 * 1024;

export class MachineChannels {
  published = 0;
  readonly #channels = new Map<string, MachineChannel>();
  readonly #readers = new Map<ChannelWorker, Reader>();
  readonly #epoch = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
  readonly #onFirst: (channel: string) => void;

  /** @param onFirst called with the name of the first channel that is used */
  constructor(onFirst = (_channel: string): void => {}) {
    this.#onFirst = onFirst;
  }

  get keptBytes(): number {
    return bytesOf(this.#channels);
  }

  receive(worker: ChannelWorker, message: ToMachine): void {
    const { channel: name, keep } = message;
    const epoch = `${this.#epoch}${this.#channels.size}`;
    if (this.#channels.size === 0) this.#onFirst(name);
    const channel = this.#channels.get(name) ?? Object.assign(new EventLog<string>(name, keep), { epoch });
    this.#channels.set(name, channel);
    channel.keep = keep;
    if (message.kind === 'channel-open') return this.#open(worker, channel);
    channel.append(message.json, message.json, this.#channels);
    this.published++;
    const id = `${channel.epoch}.${channel.last}`;
    worker.send({ kind: 'channel-published', publish: message.publish, id });
    for (const [other, reader] of this.#readers) if (reader.next.has(channel)) this.#schedule(other, reader);
  }

  gone(worker: ChannelWorker): void {
    this.#readers.delete(worker);
  }

  #open(worker: ChannelWorker, channel: MachineChannel): void {
    const { name, epoch, first, last } = channel;
    const reader = this.#readers.get(worker) ?? { next: new Map(), unsent: 0, isScheduled: false };
    this.#readers.set(worker, reader);
    reader.next.set(channel, first);
    worker.send({ kind: 'channel-opened', channel: name, epoch, first, last });
    this.#schedule(worker, reader);
  }

  /** The events of one turn go out together. */
  #schedule(worker: ChannelWorker, reader: Reader): void {
    if (reader.isScheduled) return;
    reader.isScheduled = true;
    setImmediate(() => this.#sendTo(worker, reader));
  }

  #sendTo(worker: ChannelWorker, reader: Reader): void {
    reader.isScheduled = false;
    let room = MAX_A_TURN;
    for (const [channel, next] of reader.next) {
      if (room <= 0) return this.#schedule(worker, reader);
      if (reader.unsent >= MAX_UNSENT) return;
      // If events were dropped before this worker could get them, the worker sees the gap.
      const first = Math.max(next, channel.first);
      const events: string[] = [];
      let length = 0;
      for (let number = first; number <= channel.last && length < room; number++)
        length += events[events.push(channel.get(number) as string) - 1]?.length ?? 0;
      if (events.length === 0) continue;
      // The channel becomes the last one of the loop. So the channels of a worker take turns.
      reader.next.delete(channel);
      reader.next.set(channel, first + events.length);
      reader.unsent += length;
      room -= length;
      worker.send({ kind: 'channel-events', channel: channel.name, first, events }, undefined, () => {
        reader.unsent -= length;
        this.#schedule(worker, reader);
      });
    }
  }
}
