// `channel`: events that reach every subscriber in every worker of a machine. live/channels/ delivers them.
import { processChannels } from '../../base/channel-hub.ts';
import { isBetween } from '../../base/values.ts';
import type { ChannelHub } from '../../live/channels/hub.ts';
import { Subscription } from './subscription.ts';

export interface ChannelEvent<Data> {
  readonly id: string;
  /** Frozen, because all subscribers of a process share it. */
  readonly data: Data;
  readonly event?: never;
}

/** The first item when events since `after` are not known, so the subscriber must load its state again. */
export interface ChannelReset {
  readonly id: string;
  readonly event: 'reset';
  readonly data: null;
}

export interface SubscribeOptions {
  /** The id of the last event that the subscriber has, such as `params.lastEventId`. Default: events begin now. */
  readonly after?: string | undefined;
  /** Ends the subscription. */
  readonly signal?: AbortSignal | undefined;
}

export interface Channel<Data> {
  /**
   * Publishes an event to every subscriber of this machine. Resolves with its id when the supervisor has it.
   *
   * @throws HttpError CHANNEL_BUSY beyond 500 events or 1 MiB a second in this worker; TypeError for data that is no
   *   JSON, or more than 64 KiB of it
   */
  publish(data: Data): Promise<string>;
  /** Ends with HttpError SUBSCRIBER_TOO_SLOW when the subscriber is further behind than `keep`. */
  subscribe(options?: SubscribeOptions & { readonly after?: undefined }): AsyncIterableIterator<ChannelEvent<Data>>;
  subscribe(options: SubscribeOptions): AsyncIterableIterator<ChannelEvent<Data> | ChannelReset>;
}

/** Each name costs memory in the supervisor. */
const MAX_CHANNELS = 100;

/**
 * Opens a channel of this machine. `keep` says how many events a subscriber may be behind, or miss while it reconnects.
 *
 * @throws TypeError for an invalid name, another `keep` than before, and more than 100 names
 * @example return eventStream(channel<Task>('tasks').subscribe({ after: params.lastEventId, signal: params.signal }));
 */
export function channel<Data>(name: string, { keep = 1000 }: { readonly keep?: number } = {}): Channel<Data> {
  const { names } = processChannels();
  const refuse = (mistake: string): never => {
    throw new TypeError(`channel ${JSON.stringify(name)}: ${mistake}`);
  };
  if (typeof name !== 'string' || !/^[A-Za-z][\w.-]{0,63}$/.test(name))
    refuse('a name has up to 64 letters, digits, dots, - and _, and begins with a letter');
  if (!isBetween(keep, 100, 100_000)) refuse('keep must be a whole number from 100 to 100000');
  if ((names.get(name) ?? keep) !== keep) refuse(`keep is ${names.get(name)} elsewhere: export the channel once`);
  if (names.set(name, keep).size > MAX_CHANNELS) {
    names.delete(name);
    refuse(`there are ${MAX_CHANNELS} channels already: a name must not come from a request`);
  }
  return {
    publish: async (data) => (await loadHub()).publish(name, keep, data),
    subscribe: (options: SubscribeOptions = {}) =>
      new Subscription(
        loadHub().then((hub) => hub.open(name, keep)),
        options,
      ) as AsyncIterableIterator<never>,
  };
}

async function loadHub(): Promise<ChannelHub> {
  const { load } = processChannels();
  if (load === undefined) throw new Error('a channel works in a service, and in a test with gatefold/testing');
  return load();
}
