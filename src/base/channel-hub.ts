// Where `channel` of the package finds the channels of its process. The place is global, because a controller can
// import another copy of this package.
import type { ChannelHub } from '../live/channels/hub.ts';

interface ProcessChannels {
  /** Loads the channels; undefined in a process that has none. */
  load?: () => Promise<ChannelHub>;
  /** The name of each channel, and how many events it keeps. */
  readonly names: Map<string, number>;
  /** Events that subscribers have received, and subscribers that did not keep up. */
  readonly counts: { delivered: number; tooSlow: number };
}

/** The text of an event as request/answer/event-stream.ts sends it, so that it is made once for all subscribers. */
export const EVENT_TEXT = Symbol.for('gatefold.eventText');
/** A method of an iterator of events. It resolves with the fields to send before the first event: the id of now. */
export const EVENTS_BEGIN = Symbol.for('gatefold.eventsBegin');
const PLACE = Symbol.for('gatefold.channels');

export function processChannels(): ProcessChannels {
  const place = globalThis as { [PLACE]?: ProcessChannels };
  place[PLACE] ??= { names: new Map(), counts: { delivered: 0, tooSlow: 0 } };
  return place[PLACE];
}

/** Gives channels to this process. @param load called once, at the first use of a channel */
export function provideChannels(load: () => Promise<ChannelHub>): void {
  let hub: Promise<ChannelHub> | undefined;
  processChannels().load ??= () => {
    hub ??= load();
    return hub;
  };
}
