// Shares each turn of the event loop between the streams of a process. Otherwise, a stream whose source always has data
// and whose client reads fast would never let a turn end, and other requests would wait. When streams have sent enough
// in a turn, they wait in a queue.

/** The cost, in bytes, of the pieces sent in one turn, beyond which streams that have exceeded FREE_COST wait. */
const MAX_COST_A_TURN = 256 * 1024;
/** Maximum number of waiting streams that continue in one turn. Their costs are counted only after they have sent. */
const STREAMS_A_TURN = 4;
/** The cost, in bytes, up to which a stream never waits. A short stream is not worth a queue. */
const FREE_COST = 128 * 1024;
/** The cost of each piece, in bytes, in addition to its length. */
const PIECE_COST = 16 * 1024;

const waiting: (() => void)[] = [];
let costOfTurn = 0;
let isTurnScheduled = false;

/** Counts a piece that was sent. @param bytes its length @returns its cost */
export function countSent(bytes: number): number {
  costOfTurn += PIECE_COST + bytes;
  if (!isTurnScheduled) scheduleTurn();
  return PIECE_COST + bytes;
}

/** @param cost the cost of all pieces of the stream so far @returns whether the stream may send more in this turn */
export function maySendMore(cost: number): boolean {
  return cost <= FREE_COST || costOfTurn < MAX_COST_A_TURN;
}

/** Calls `send` now or, when this turn is used up, in a later one. */
export function whenMaySendMore(cost: number, send: () => void): void {
  if (maySendMore(cost)) send();
  else waiting.push(send);
}

function scheduleTurn(): void {
  isTurnScheduled = true;
  setImmediate(runTurn);
}

function runTurn(): void {
  isTurnScheduled = false;
  costOfTurn = 0;
  const due = waiting.splice(0, STREAMS_A_TURN);
  // The next turn is scheduled before the streams run, because one of them may throw.
  if (waiting.length > 0) scheduleTurn();
  for (const send of due) send();
}
