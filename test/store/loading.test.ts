// Without STORE, no process loads a file of src/store: the imports that run at once do not lead there.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { it } from 'node:test';

const SRC = resolve(import.meta.dirname, '../../src');

/** The files that an entry loads at once, relative to src. */
function filesOf(entry: string): string[] {
  const paths = new Set([join(SRC, entry)]);
  for (const path of paths)
    for (const [, names = '', specifier = ''] of readFileSync(path, 'utf8').matchAll(
      /^(?:import|export)\s+([^;']*?)from\s+'(\.[^']+)'/gm,
    ))
      if (!names.startsWith('type ')) paths.add(resolve(path, '..', specifier));
  return Array.from(paths, (path) => relative(SRC, path));
}

for (const entry of [
  'server.ts',
  'worker.ts',
  'cli.ts',
  'cli/credentials.ts',
  'cli/doctor.ts',
  'supervisor/serve.ts',
]) {
  it(`${entry} loads nothing of the store`, () => {
    const files = filesOf(entry);
    assert.ok(files.length > 3);
    assert.deepEqual(
      files.filter((file) => file.startsWith('store') || file === 'limits/shared-rates.ts'),
      [],
    );
  });
}
