// The channels of a worker. The worker has a copy of the kept events of each channel that it has opened, and serves all
// its subscribers from it. So a client that reconnects costs the supervisor nothing.
import type { Subscription } from '../../api/controller/subscription.ts';
import { EVENT_TEXT } from '../../base/channel-hub.ts';
import { refusal } from '../../base/errors.ts';
import { describeLostObject } from '../../request/answer/json.ts';
import { EventLog } from './event-log.ts';
import { type ChannelWorker, type FromMachine, MachineChannels, type ToMachine } from './machine.ts';

const MAX_DATA = 64 * 1024;
/** The limits of what this process publishes in a second. */
const MAX_EVENTS = 500;
const MAX_BYTES = 1024 * 1024;

/** An event as subscribers get it: `{ id, data }`. */
export type ChannelItem = Readonly<Record<string, unknown>>;

export class WorkerChannel extends EventLog<ChannelItem> {
  epoch = '';
  /** The number of the newest event of the machine, as far as this process knows. */
  newest = 0;
  readonly waiting = new Set<Subscription>();
  onOpened = (_newest: number): void => {};
  readonly opened = new Promise<number>((resolve) => {
    this.onOpened = resolve;
  });
}

/** `newest` is the newest event at the call of `open`. Later ones may have arrived since. */
export interface OpenChannel {
  readonly channel: WorkerChannel;
  readonly newest: number;
}

export class ChannelHub {
  readonly #send: (message: ToMachine) => void;
  readonly #channels = new Map<string, WorkerChannel>();
  readonly #unconfirmed = new Map<number, { resolve(id: string): void; reject(error: Error): void }>();
  #publishes = 0;
  #second = { begin: Number.NEGATIVE_INFINITY, events: 0, bytes: 0 };

  constructor(send: (message: ToMachine) => void) {
    this.#send = send;
    process.once('disconnect', () => {
      for (const { reject } of this.#unconfirmed.values()) reject(busy());
    });
  }

  /** @returns the id of the event @throws HttpError CHANNEL_BUSY; TypeError for data that no event can have */
  async publish(channel: string, keep: number, data: unknown): Promise<string> {
    const json = encode(data);
    const now = performance.now();
    if (now - this.#second.begin >= 1000) this.#second = { begin: now, events: 0, bytes: 0 };
    this.#second.bytes += Buffer.byteLength(json);
    const isFast = ++this.#second.events > MAX_EVENTS || this.#second.bytes > MAX_BYTES;
    if (isFast || this.#unconfirmed.size >= 2 * MAX_EVENTS || process.connected === false) throw busy();
    const publish = ++this.#publishes;
    const id = await new Promise<string>((resolve, reject) => {
      this.#unconfirmed.set(publish, { resolve, reject });
      this.#send({ kind: 'channel-publish', channel, keep, json, publish });
    });
    this.#unconfirmed.delete(publish);
    // The event itself arrives after this confirmation. A subscription that begins meanwhile begins behind it.
    const known = this.#channels.get(channel);
    if (known !== undefined) known.newest = Math.max(known.newest, Number(id.split('.')[1]));
    return id;
  }

  /** Resolves when the supervisor has sent the numbers of its events. Asks once for all subscriptions. */
  async open(name: string, keep: number): Promise<OpenChannel> {
    const known = this.#channels.get(name);
    const channel = known ?? new WorkerChannel(name, keep);
    this.#channels.set(name, channel);
    // Sent before the first wait: what this process publishes from now on must come after it.
    if (known === undefined) this.#send({ kind: 'channel-open', channel: name, keep });
    return { channel, newest: channel.epoch === '' ? await channel.opened : channel.newest };
  }

  receive(message: FromMachine): void {
    if (message.kind === 'channel-published') return this.#unconfirmed.get(message.publish)?.resolve(message.id);
    const channel = this.#channels.get(message.channel) as WorkerChannel;
    if (message.kind === 'channel-opened') {
      channel.restart(message.first);
      Object.assign(channel, { epoch: message.epoch, newest: message.last });
      return channel.onOpened(message.last);
    }
    // The supervisor has dropped the events between.
    if (message.first > channel.last + 1) channel.restart(message.first);
    for (const json of message.events)
      channel.append(createItem(`${channel.epoch}.${channel.last + 1}`, json), json, this.#channels);
    channel.newest = Math.max(channel.newest, channel.last);
    for (const subscription of channel.waiting) subscription.wake();
  }
}

/** Returns the channels of one process without a supervisor: of a test, and of a command that loads controllers. */
export async function createLocalChannels(): Promise<ChannelHub> {
  const machine = new MachineChannels();
  const worker: ChannelWorker = {
    send(message, _socket, onSent) {
      hub.receive(message);
      onSent?.();
    },
  };
  const hub = new ChannelHub((message) => machine.receive(worker, message));
  return hub;
}

function busy(): Error {
  return refusal('CHANNEL_BUSY', undefined, { headers: { 'Retry-After': '1' } });
}

function encode(data: unknown): string {
  const json: string | undefined = JSON.stringify(data);
  const mistake =
    json === undefined
      ? `a ${typeof data}, which has no JSON form`
      : Buffer.byteLength(json) > MAX_DATA
        ? `${Buffer.byteLength(json)} bytes of JSON, the limit is ${MAX_DATA}`
        : describeLostObject(data, json);
  if (mistake !== undefined) throw new TypeError(`the data of an event has ${mistake}`);
  return json;
}

/** The data are parsed when a subscriber reads them, once for all subscribers. A live page only sends the text. */
function createItem(id: string, json: string): ChannelItem {
  let parsed: { readonly data: unknown } | undefined;
  const get = () => {
    parsed ??= { data: frozen(JSON.parse(json)) };
    return parsed.data;
  };
  // A copy of the item with another field has another text, so it must not have EVENT_TEXT.
  const text = { value: `id: ${id}\ndata: ${json}\n\n` };
  return Object.defineProperties({ id }, { data: { enumerable: true, get }, [EVENT_TEXT]: text });
}

/** Freezes all of a value, without a call for each level: JSON.parse takes deeper data than a function that recurs. */
function frozen(root: unknown): unknown {
  const values = [root];
  for (const value of values)
    if (typeof value === 'object' && value !== null)
      for (const item of Object.values(Object.freeze(value))) values.push(item);
  return root;
}
