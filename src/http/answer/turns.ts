// What streams may send in one turn of the event loop, all of a process together: a source that has always something, and a client
// that keeps up with it or whose kernel takes it, would never let anybody else have one. Those that wait go on in their order.

/** A piece costs 16 KiB more than is in it. */
const BYTES_A_TURN = 256 * 1024;
const PIECE_COST = 16 * 1024;
/** Of those that wait. What one of them sends is known only after it has been let go on. */
const STREAMS_A_TURN = 4;

const waiting: (() => void)[] = [];
let spent = 0;
let isTurning = false;

/** Counts a piece that was sent. @returns whether there may be more in this turn */
export function spend(bytes: number): boolean {
  spent += PIECE_COST + bytes;
  turnLater();
  return spent < BYTES_A_TURN;
}

/** Goes on now or, when this turn is used up, in one that comes. */
export function whenThereIsRoom(goOn: () => void): void {
  if (spent < BYTES_A_TURN) return goOn();
  waiting.push(goOn);
}

function turnLater(): void {
  if (isTurning) return;
  isTurning = true;
  setImmediate(turn);
}

function turn(): void {
  isTurning = false;
  spent = 0;
  for (const goOn of waiting.splice(0, STREAMS_A_TURN)) goOn();
  if (waiting.length > 0) turnLater();
}
