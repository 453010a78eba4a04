// Tests a channel over edits and kills of workers. test/soak/channels.soak.ts has 100,000 events.
import { test } from 'node:test';
import { runChannel } from '../support/channel-run.ts';

test('pages get each confirmed event once, over edits and kills', async (t) => {
  t.diagnostic(await runChannel(t, { events: 1500, edits: 2, kills: 2, pages: 8 }));
});
