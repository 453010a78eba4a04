// The modules of src and of test that a controller imports, or that a test starts as a process. In a run of all tests
// they are the JavaScript of test/compile.mjs, as the modules of the test itself are. Alone, a test has TypeScript.
import { dirname, extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { entryPath } from '../../src/own-files.ts';

const CLI = entryPath('cli');
const EXTENSION = extname(CLI);

/** Node's own flags for these modules. */
export const LOADER: readonly string[] =
  EXTENSION === '.js' || process.features.typescript ? [] : ['--import', import.meta.resolve('tsx')];

/** @param name the path from the root of the checkout, without the extension: `src/worker` */
export function modulePath(name: string): string {
  return join(dirname(CLI), '..', name + EXTENSION);
}

/** @param name the path from the root of the checkout, without the extension: `src/controller` */
export function moduleUrl(name: string): string {
  return pathToFileURL(modulePath(name)).href;
}
