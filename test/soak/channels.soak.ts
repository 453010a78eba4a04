// A channel over 100,000 events, 20 edits, and kills of workers: no event is lost, and none comes twice. Runs on every
// Node of SOAK_NODES (paths, separated by colons; default: this one). Takes five minutes each (`npm run soak`).
import { test } from 'node:test';
import { runChannel } from '../support/channel-run.ts';

const EVENTS = Number(process.env.SOAK_EVENTS ?? 100_000);
const NODES = (process.env.SOAK_NODES ?? process.execPath).split(':');

for (const node of NODES)
  test(`${EVENTS} events with ${node}`, async (t) => {
    t.diagnostic(await runChannel(t, { events: EVENTS, edits: 20, kills: 15, pages: 20, node }));
  });
