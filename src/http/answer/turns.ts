// What streams may send in one turn of the event loop, all of a process together: a source that has always something,
// and a client that keeps up with it or whose kernel takes it, would never let anybody else have one. Those that wait
// go on in their order.

const BYTES_A_TURN = 256 * 1024;
/** Of those that wait. What one of them sends is known only after it has been let go on. */
const STREAMS_A_TURN = 4;
/** Bytes that a stream never waits with: a short one is no reason for a turn. */
const AT_ONCE = 128 * 1024;
/** A piece costs 16 KiB more than is in it. */
const PIECE_COST = 16 * 1024;

const waiting: (() => void)[] = [];
let spent = 0;
let isTurning = false;

/** @returns what a piece that was sent costs its stream */
export function spend(bytes: number): number {
  spent += PIECE_COST + bytes;
  if (!isTurning) turnLater();
  return PIECE_COST + bytes;
}

/** @param cost of what a stream has sent so far @returns whether it may send more in this turn */
export function hasRoom(cost: number): boolean {
  return cost <= AT_ONCE || spent < BYTES_A_TURN;
}

/** Goes on now or, when this turn is used up, in one that comes. */
export function whenThereIsRoom(cost: number, goOn: () => void): void {
  if (hasRoom(cost)) goOn();
  else waiting.push(goOn);
}

function turnLater(): void {
  isTurning = true;
  setImmediate(turn);
}

function turn(): void {
  isTurning = false;
  spent = 0;
  const due = waiting.splice(0, STREAMS_A_TURN);
  // First: whatever one of them throws, the others have their turn.
  if (waiting.length > 0) turnLater();
  for (const goOn of due) goOn();
}
