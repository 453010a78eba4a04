// Ends the operations that run out of time. A timer of Node for each asynchronous operation would cost 4 percent of its
// request (bench/NOTES.md). So all operations with the same limit share one timer.
import { AsyncResource } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import { isInspected } from '../base/inspector.ts';
import type { Exchange } from './exchange.ts';

export class TimeLimits {
  /** Key: a limit in milliseconds. */
  readonly #rings = new Map<number, Ring>();
  readonly #look: (ring: Ring) => void;

  /** @param expire called with a limit in milliseconds, in no context: one timer serves operations of many requests */
  constructor(expire: (exchange: Exchange, limit: number) => void) {
    this.#look = AsyncResource.bind((ring: Ring) => ring.look(expire));
  }

  /** Starts the limit of an exchange. @param left the milliseconds of the limit that are left, if it was paused */
  start(exchange: Exchange, limit: number, left = limit): void {
    let ring = this.#rings.get(limit);
    if (ring === undefined) {
      ring = new Ring(limit, this.#look);
      this.#rings.set(limit, ring);
    }
    exchange.timeLimit = new TimeLimit(exchange, ring, performance.now() + left);
    ring.watch();
  }
}

interface Link {
  /** In milliseconds of `performance.now()`. */
  readonly deadline: number;
  previous: Link;
  next: Link;
}

/** The running limits of one length, by their deadlines. The ring itself is the link before the first one. */
class Ring implements Link {
  readonly deadline = Number.NEGATIVE_INFINITY;
  previous: Link = this;
  next: Link = this;
  readonly #limit: number;
  readonly #look: (ring: Ring) => void;
  #timer: NodeJS.Timeout | undefined;
  /** A deadline that was the first one. Its operation can have ended since. */
  #timerEnd = Number.POSITIVE_INFINITY;

  constructor(limit: number, look: (ring: Ring) => void) {
    this.#limit = limit;
    this.#look = look;
  }

  /** Called after a limit was added or has ended. While none runs, the timer does not keep the process alive. */
  watch(): void {
    if (this.next === this) return void this.#timer?.unref();
    // A limit that was paused can end before those that began later.
    if (this.next.deadline < this.#timerEnd) this.#setTimer(this.next.deadline);
    else this.#timer?.ref();
  }

  look(expire: (exchange: Exchange, limit: number) => void): void {
    // Where a test replaces the timers of Node, this clock does not move.
    const now = Math.max(performance.now(), this.#timerEnd);
    this.#timerEnd = Number.POSITIVE_INFINITY;
    // A breakpoint can stop an operation for as long as a person thinks.
    if (isInspected() && this.next !== this) return this.#setTimer(now + this.#limit);
    try {
      for (let first = this.next; first instanceof TimeLimit && first.deadline <= now; first = this.next) {
        first.end();
        expire(first.exchange, this.#limit);
      }
    } finally {
      this.watch();
    }
  }

  #setTimer(end: number): void {
    clearTimeout(this.#timer);
    this.#timerEnd = end;
    this.#timer = setTimeout(this.#look, end - performance.now(), this);
  }
}

/** The time limit of one operation, while it runs. */
export class TimeLimit implements Link {
  readonly exchange: Exchange;
  readonly deadline: number;
  previous: Link;
  next: Link;
  readonly #ring: Ring;

  constructor(exchange: Exchange, ring: Ring, deadline: number) {
    let { previous } = ring;
    while (previous.deadline > deadline) ({ previous } = previous);
    this.exchange = exchange;
    this.deadline = deadline;
    this.#ring = ring;
    this.previous = previous;
    this.next = previous.next;
    previous.next = this;
    this.next.previous = this;
  }

  end(): void {
    this.exchange.timeLimit = undefined;
    this.previous.next = this.next;
    this.next.previous = this.previous;
    if (this.#ring.next === this.#ring) this.#ring.watch();
  }
}
