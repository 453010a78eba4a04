// Shares each turn of the event loop between the streamed answers of a process. Otherwise, a stream whose source always
// has data and whose client reads fast would never let a turn end, and other requests would wait. Each piece that a
// stream sends has a cost. When the pieces of one turn have cost TURN_QUOTA, long streams wait for later turns.

/** The cost of a piece is its length in bytes, plus this. */
const COST_BESIDE_LENGTH = 16 * 1024;
/** A stream whose pieces have cost no more than this never waits. */
const FREE_COST = 128 * 1024;
/** When the pieces of one turn have cost this much, each stream beyond FREE_COST waits before its next piece. */
const TURN_QUOTA = 256 * 1024;
/** Maximum waiting streams that continue in one turn. TURN_QUOTA alone would start all before a cost is counted. */
const STREAMS_A_TURN = 4;

/** For each waiting stream, the function that sends its next piece. */
const waitingSends: (() => void)[] = [];
let costOfTurn = 0;
let isTurnScheduled = false;

/** Counts a piece that was sent. @param bytes the length of the piece @returns the cost of the piece */
export function countSent(bytes: number): number {
  costOfTurn += COST_BESIDE_LENGTH + bytes;
  if (!isTurnScheduled) scheduleTurn();
  return COST_BESIDE_LENGTH + bytes;
}

/** @param cost the cost of all pieces of the stream so far @returns whether the stream may send more in this turn */
export function maySendMore(cost: number): boolean {
  return cost <= FREE_COST || costOfTurn < TURN_QUOTA;
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
