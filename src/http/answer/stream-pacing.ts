// Shares each turn of the event loop between the streamed answers of a process. Otherwise, a stream whose source always
// has data and whose client reads fast would never let a turn end, and other requests would wait. When the streams have
// sent enough in a turn, they wait in a queue for later turns.

/** The cost, in bytes, of all pieces sent in one turn at which streams that have exceeded FREE_COST begin to wait. */
const MAX_COST_A_TURN = 256 * 1024;
/** Maximum number of waiting streams that continue in one turn. The cost of a turn is known too late to limit them. */
const STREAMS_A_TURN = 4;
/** The cost, in bytes, of all pieces of a stream up to which the stream never waits. */
const FREE_COST = 128 * 1024;
/** The cost of each piece, in bytes, in addition to its length. */
const PIECE_COST = 16 * 1024;

/** For each waiting stream, the function that sends its next piece. */
const waitingSends: (() => void)[] = [];
let costOfTurn = 0;
let isTurnScheduled = false;

/** Counts a piece that was sent. @param bytes the length of the piece @returns the cost of the piece */
export function countSent(bytes: number): number {
  costOfTurn += PIECE_COST + bytes;
  if (!isTurnScheduled) scheduleTurn();
  return PIECE_COST + bytes;
}

/** @param cost the cost of all pieces of the stream so far @returns whether the stream may send more in this turn */
export function maySendMore(cost: number): boolean {
  return cost <= FREE_COST || costOfTurn < MAX_COST_A_TURN;
}

/** Calls `send` in this turn if the stream may send more, or else in a later turn. */
export function whenMaySendMore(cost: number, send: () => void): void {
  if (maySendMore(cost)) send();
  else waitingSends.push(send);
}

function scheduleTurn(): void {
  isTurnScheduled = true;
  setImmediate(runTurn);
}

function runTurn(): void {
  isTurnScheduled = false;
  costOfTurn = 0;
  const sendsOfTurn = waitingSends.splice(0, STREAMS_A_TURN);
  // The next turn is scheduled before the streams run, because one of them may throw.
  if (waitingSends.length > 0) scheduleTurn();
  for (const send of sendsOfTurn) send();
}
