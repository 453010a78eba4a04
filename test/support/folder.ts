// Folders of controllers that are removed after the test.
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';

export function createFolder(test: TestContext, files: Readonly<Record<string, string>> = {}): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-')));
  // A service of the test can still write into the folder. Its own hook ends it later, so this one must not throw.
  // test/run.mjs removes all folders of its tests. Nothing else of the test runs during the removal.
  test.after(() => {
    try {
      rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
    } catch {}
  });
  const dir = join(root, 'controllers');
  mkdirSync(dir);
  // A project has this file, too. Without it, older releases of Node load a TypeScript file as CommonJS.
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  for (const [name, text] of Object.entries(files)) write(dir, name, text);
  return dir;
}

/** Replaces a file by a rename, as editors do, so that no reader sees a part of it. */
export function write(dir: string, name: string, text: string): void {
  const path = join(dir, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.part~`, text);
  renameSync(`${path}.part~`, path);
}

/** The source of a controller whose `index` returns `{ value, pid }`. */
export function controller(value: string | number, head = ''): string {
  return `${head}\nexport default class { index() { return { value: ${JSON.stringify(value)}, pid: process.pid }; } }\n`;
}
