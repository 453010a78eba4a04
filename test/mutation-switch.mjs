// Loaded into each process of a test by mutate.mjs. Turns the mutation MUTATION on, or writes to REACHED_FILE which
// mutations the process reaches.
import { openSync, writeSync } from 'node:fs';

const { MUTATION, REACHED_FILE } = process.env;
const on = Number(MUTATION);
/** @type {Set<number>} */
const reached = new Set();
// A test can use up all descriptors, so the file stays open.
const list = REACHED_FILE === undefined ? -1 : openSync(REACHED_FILE, 'a');

/** @param {number} id */
const record = (id) => {
  if (reached.has(id)) return false;
  reached.add(id);
  // A process can be killed at any time, so each is written at once.
  writeSync(list, `${id}\n`);
  return false;
};

Object.assign(globalThis, {
  isMutationOn: REACHED_FILE === undefined ? (/** @type {number} */ id) => id === on : record,
});
