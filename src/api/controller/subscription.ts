// A subscription to a channel: the number of its next event in the worker's copy of the channel.
import { EVENTS_BEGIN, processChannels } from '../../base/channel-hub.ts';
import { refusal } from '../../base/errors.ts';
import type { ChannelItem, OpenChannel, WorkerChannel } from '../../live/channels/hub.ts';
import type { SubscribeOptions } from './channel.ts';

type Result = IteratorResult<ChannelItem, undefined>;

export class Subscription implements AsyncIterableIterator<ChannelItem> {
  readonly #opening: Promise<WorkerChannel>;
  readonly #options: SubscribeOptions;
  /** Both are set when the channel is open. */
  #channel: WorkerChannel | undefined;
  #next = 0;
  #needsReset = false;
  #isOver = false;
  #pending: { resolve(result: Result): void; reject(error: unknown): void } | undefined;
  /** The promise of the last call of `next`. A call while that one is pending waits for it. */
  #waiting: Promise<unknown> = Promise.resolve();

  constructor(opening: Promise<OpenChannel>, options: SubscribeOptions) {
    this.#options = options;
    this.#opening = opening.then((open) => this.#start(open));
    this.#opening.catch(() => {});
    options.signal?.addEventListener('abort', this.#end);
    if (options.signal?.aborted) this.#end();
  }

  next(): Promise<Result> {
    if (this.#channel === undefined && !this.#isOver) return this.#opening.then(() => this.next());
    const next = () => this.next();
    if (this.#pending !== undefined) return this.#waiting.then(next, next);
    const waiting = new Promise<Result>((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#channel?.waiting.add(this);
      this.wake();
    });
    this.#waiting = waiting;
    return waiting;
  }

  async return(): Promise<Result> {
    this.#end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** A client that has this id misses nothing, also if it reconnects before its first event. A reset has its own id. */
  async [EVENTS_BEGIN](): Promise<string> {
    const { epoch } = await this.#opening;
    return this.#needsReset ? '' : `id: ${epoch}.${this.#next - 1}\n`;
  }

  /** Called when the channel has more events. */
  wake(): void {
    if (this.#pending === undefined) return;
    try {
      const result = this.#take();
      if (result === undefined) return;
      this.#pending.resolve(result);
    } catch (error) {
      this.#pending.reject(error);
      this.#end();
    }
    this.#pending = undefined;
    this.#channel?.waiting.delete(this);
  }

  readonly #end = (): void => {
    this.#isOver = true;
    this.#options.signal?.removeEventListener('abort', this.#end);
    this.wake();
  };

  #start({ channel, newest }: OpenChannel): WorkerChannel {
    const { after } = this.#options;
    const { first, keep, epoch } = channel;
    const [, ownEpoch, number] = /^(\w+)\.(\d{1,15})$/.exec(String(after)) ?? [];
    // Another worker can have sent an event before it came here, but a worker is never further behind than `keep`.
    const isKnown = ownEpoch === epoch && Number(number) >= first - 1 && Number(number) <= newest + keep;
    this.#needsReset = after !== undefined && !isKnown;
    this.#next = (isKnown ? Number(number) : newest) + 1;
    this.#channel = channel;
    return channel;
  }

  /** @returns undefined when the next event has not come yet @throws HttpError SUBSCRIBER_TOO_SLOW */
  #take(): Result | undefined {
    if (this.#isOver) return { done: true, value: undefined };
    const channel = this.#channel as WorkerChannel;
    if (this.#needsReset) {
      this.#needsReset = false;
      return { done: false, value: { id: `${channel.epoch}.${this.#next - 1}`, event: 'reset', data: null } };
    }
    const { counts } = processChannels();
    if (this.#next < channel.first) {
      counts.tooSlow++;
      throw refusal(
        'SUBSCRIBER_TOO_SLOW',
        `The subscriber is more than ${channel.keep} events of ${channel.name} behind`,
      );
    }
    const value = channel.get(this.#next);
    if (value === undefined) return undefined;
    this.#next++;
    counts.delivered++;
    return { done: false, value };
  }
}
