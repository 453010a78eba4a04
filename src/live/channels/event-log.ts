// The last events of a channel. The supervisor has them for its workers, and each worker has a copy for its
// subscribers. A reader is only the number of its next event, so no reader can make a process keep more.

/** Bytes for the events of all channels of a process. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Bytes that an event takes beside its text. */
const COST_BESIDE_TEXT = 200;

export class EventLog<Item> {
  readonly name: string;
  keep: number;
  /** The number of the oldest event that is kept. The numbers of a log have no gap. */
  first = 1;
  bytes = 0;
  readonly #events = new Map<number, { readonly item: Item; readonly cost: number }>();

  constructor(name: string, keep: number) {
    this.name = name;
    this.keep = keep;
  }

  get last(): number {
    return this.first + this.#events.size - 1;
  }

  get(number: number): Item | undefined {
    return this.#events.get(number)?.item;
  }

  /** @param text the text of the event @param all all logs of this process */
  append(item: Item, text: string, all: ReadonlyMap<string, EventLog<Item>>): void {
    // A text with one emoji takes two bytes for each of its characters.
    const isAscii = Buffer.byteLength(text) === text.length;
    const cost = text.length * (isAscii ? 1 : 2) + COST_BESIDE_TEXT;
    this.#events.set(this.last + 1, { item, cost });
    this.bytes += cost;
    while (this.#events.size > this.keep) this.dropFirst();
    // The largest log makes room, so a channel with much data costs the others no event.
    while (bytesOf(all) > MAX_BYTES) [...all.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a)).dropFirst();
  }

  dropFirst(): void {
    this.bytes -= this.#events.get(this.first)?.cost ?? 0;
    this.#events.delete(this.first++);
  }

  /** Forgets all events. @param first the number of the next event */
  restart(first: number): void {
    this.#events.clear();
    this.bytes = 0;
    this.first = first;
  }
}

export function bytesOf(logs: ReadonlyMap<string, EventLog<unknown>>): number {
  let bytes = 0;
  for (const log of logs.values()) bytes += log.bytes;
  return bytes;
}
