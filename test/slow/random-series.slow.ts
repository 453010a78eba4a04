// The random series of some quick tests, with many more runs.
import { describe } from 'node:test';

process.env.RUNS = '600';
const files = {
  'live/supervisor/model': () => import('../live/supervisor/model.test.ts'),
  'callers/credentials/split-changes': () => import('../callers/credentials/split-changes.test.ts'),
  'callers/credentials/table': () => import('../callers/credentials/table.test.ts'),
};
for (const [name, load] of Object.entries(files)) await describe(name, () => load().then(() => {}));
