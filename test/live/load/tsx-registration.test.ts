// `tsx` is registered only once in a process, by Gatefold or by somebody else. A second registration would transform
// each file twice. Node 22.18 and later load TypeScript without `tsx`.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createFolder } from '../../support/folder.ts';
import { modulePath } from '../../support/own-modules.ts';

const LOADER = pathToFileURL(modulePath('src/live/load/module-loader')).href;
const SCRIPT = `
import module from 'node:module';
let registrations = 0;
const { register } = module;
module.register = (...args) => {
  registrations++;
  return register(...args);
};
module.syncBuiltinESMExports();
const { createModuleLoader } = await import(process.argv[2]);
await createModuleLoader().load(process.argv[3], 0);
console.log(registrations);
`;

describe('a process does not register tsx a second time', {
  skip: process.features.typescript ? 'this Node strips types' : false,
}, () => {
  const rows: [name: string, args: string[], env?: Record<string, string>][] = [
    ['with --import tsx', ['--import', 'tsx']],
    ['with --import and the file of tsx', [`--import=${import.meta.resolve('tsx')}`]],
    ['with NODE_OPTIONS', [], { NODE_OPTIONS: '--import tsx' }],
  ];
  for (const [name, args, env] of rows)
    it(name, (t) => {
      const dir = createFolder(t, {
        'AController.ts': 'export default class { index(): number { return 1; } }',
        'run.mjs': SCRIPT,
      });
      const output = execFileSync(
        process.execPath,
        [...args, join(dir, 'run.mjs'), LOADER, join(dir, 'AController.ts')],
        { encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '', ...env }, cwd: process.cwd() },
      );
      assert.equal(output.trim(), '0');
    });
});
