// Limits the uploads that operations read as streams: their number in the process and for each network, and how slowly
// a client may send. Only the time in which an operation waits for its client counts, because a slow operation is not
// the client's fault. Such a wait does not count as a request in flight, either.
import { refusal } from '../../base/errors.ts';
import type { Exchange } from '../exchange.ts';
import { overloaded } from './body.ts';
import { MIN_UPLOAD_PROGRESS } from './budget.ts';

export interface StreamedUploadsOptions {
  /** Maximum number of streamed uploads in the process. */
  readonly limit: number;
  /** Returns the network of the client: its address, or the /64 of an IPv6 address. */
  readonly networkOf: (exchange: Exchange) => string;
  /** A clock in milliseconds that never goes back. */
  readonly now?: () => number;
}

interface Upload {
  readonly network: string;
  readonly fail: (error: unknown) => void;
  /** When the operation began to wait for bytes; -1 while it does not wait. */
  waitsSince: number;
  /** Milliseconds of all waits until `waitsSince`. */
  waited: number;
  /** The marks of the seconds of the last SLOW_AFTER that the operation waited. */
  readonly marks: Mark[];
}

interface Mark {
  /** Milliseconds of all waits. */
  readonly waited: number;
  readonly bytesRead: number;
}

/** The part of the limit that the uploads of one network may take: a quarter. */
const NETWORK_DIVISOR = 4;
/** Minimum bytes that a client must send in each second. The average over any SLOW_AFTER counts. */
const MIN_STREAM_RATE = 1024;
/** Milliseconds of waits after which a slow upload is ended. */
const SLOW_AFTER = 30_000;
/** Milliseconds between two checks, and of waits after which a slow upload is ended when there are too many uploads. */
const CHECK_INTERVAL = 1000;

export class StreamedUploads {
  readonly #options: StreamedUploadsOptions;
  readonly #now: () => number;
  readonly #networkLimit: number;
  readonly #uploads = new Map<Exchange, Upload>();
  /** The number of uploads of each network that has one. */
  readonly #counts = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: StreamedUploadsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#networkLimit = Math.ceil(options.limit / NETWORK_DIVISOR);
  }

  begin(exchange: Exchange, fail: (error: unknown) => void): void {
    const network = this.#options.networkOf(exchange);
    if (this.#isFull(network)) throw overloaded();
    this.#counts.set(network, this.#countOf(network) + 1);
    const { bytesRead } = exchange.socket;
    this.#uploads.set(exchange, { network, fail, waitsSince: -1, waited: 0, marks: [{ waited: 0, bytesRead }] });
    this.#timer ??= setInterval(() => setImmediate(() => this.#endSlow()), CHECK_INTERVAL).unref();
  }

  beginWait(exchange: Exchange): void {
    const upload = this.#uploads.get(exchange);
    if (upload !== undefined && upload.waitsSince < 0) upload.waitsSince = this.#now();
  }

  endWait(exchange: Exchange): void {
    const upload = this.#uploads.get(exchange);
    if (upload === undefined || upload.waitsSince < 0) return;
    upload.waited += this.#now() - upload.waitsSince;
    upload.waitsSince = -1;
  }

  /** Called when nothing more is read, and when the request is answered. Only the first call has an effect. */
  end(exchange: Exchange): void {
    const upload = this.#uploads.get(exchange);
    if (upload === undefined) return;
    this.#uploads.delete(exchange);
    const count = this.#countOf(upload.network) - 1;
    if (count === 0) this.#counts.delete(upload.network);
    else this.#counts.set(upload.network, count);
    if (this.#uploads.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Returns the number of requests in flight that wait for their clients. */
  waitingCount(): number {
    let count = 0;
    for (const [{ answer }, { waitsSince }] of this.#uploads) if (waitsSince >= 0 && !answer.isStreaming) count++;
    return count;
  }

  #countOf(network: string): number {
    return this.#counts.get(network) ?? 0;
  }

  #isFull(network: string): boolean {
    return this.#uploads.size >= this.#options.limit || this.#countOf(network) >= this.#networkLimit;
  }

  #endSlow(): void {
    const now = this.#now();
    const slowUploads: [upload: Upload, error: Error][] = [];
    for (const [exchange, upload] of this.#uploads) {
      if (upload.waitsSince >= 0) {
        upload.waited += now - upload.waitsSince;
        upload.waitsSince = now;
      }
      const { waited, marks } = upload;
      const [first, last] = [marks[0], marks.at(-1)] as [Mark, Mark];
      if (waited - last.waited < CHECK_INTERVAL) continue;
      const { bytesRead } = exchange.socket;
      const rateSince = (mark: Mark) => (bytesRead - mark.bytesRead) / ((waited - mark.waited) / 1000);
      const isLongEnough = waited - first.waited >= SLOW_AFTER;
      if (isLongEnough && rateSince(first) < MIN_STREAM_RATE) slowUploads.push([upload, tooSlow()]);
      else if (rateSince(last) < MIN_UPLOAD_PROGRESS && this.#isFull(upload.network))
        slowUploads.push([upload, overloaded()]);
      if (isLongEnough) marks.shift();
      marks.push({ waited, bytesRead });
    }
    for (const [{ fail }, error] of slowUploads) fail(error);
  }
}

function tooSlow(): Error {
  const cause = new Error(`the client sent fewer than ${MIN_STREAM_RATE} bytes a second`);
  return refusal('REQUEST_TIMEOUT', 'Cannot read the body: it arrives too slowly', { cause });
}
