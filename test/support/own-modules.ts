// The modules of src and test that a controller imports or that a test starts as a process. In a run of all tests they
// are the JavaScript that test/compile.mjs wrote, like the modules of the test itself. In a test that runs alone, they
// are TypeScript.
import { dirname, extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { entryPath } from '../../src/own-files.ts';

const CLI = entryPath('cli');
const EXTENSION = extname(CLI);

/** The flags with which Node loads these modules. */
export const LOADER: readonly string[] =
  EXTENSION === '.js' || process.features.typescript ? [] : ['--import', import.meta.resolve('tsx')];

/** @param name the path from the root of the checkout, without the extension: `src/bin/worker` */
export function modulePath(name: string): string {
  return join(dirname(CLI), '../..', name + EXTENSION);
}

/** @param name the path from the root of the checkout, without the extension: `src/api/controller` */
export function moduleUrl(name: string): string {
  return pathToFileURL(modulePath(name)).href;
}
