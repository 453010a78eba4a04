// Provides the package `gatefold` to files for which Node finds no installed one, as in a controllers folder outside of
// any project. Such a file imports the running package. A file for which Node finds an installed package imports that
// package. This file does not load controllers.
import { readFileSync, realpathSync } from 'node:fs';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { errorCode } from '../base/failure.ts';
import { onMissingRequire } from '../base/node-internals.ts';
import { packagePath, resolveOwnImport, version } from '../own-files.ts';

const IS_OWN = /^gatefold(?:\/|$)/;
const NAMES_OWN = /(['"])gatefold(?:\/[\w./-]+)?\1/;

/** Returns the URL of an entry of the running package, when the import of that entry has found no package. */
export function ownUrl(specifier: string, error: unknown): string | undefined {
  const path = ownPath(specifier, error);
  return path && pathToFileURL(path).href;
}

function ownPath(specifier: string, error: unknown): string | undefined {
  return IS_OWN.test(specifier) && isMissing(error) ? resolveOwnImport(specifier) : undefined;
}

function isMissing(error: unknown): boolean {
  return /^(?:ERR_)?MODULE_NOT_FOUND$/.test(errorCode(error) ?? '');
}

let isProvided = false;

/**
 * Makes imports and requires of `gatefold` in this process use the running package when they find no other. Only Node
 * before 22.15 needs this function. There, only a separate thread can answer an import, so the thread starts when the
 * first source needs it.
 *
 * @param source the text of `path`, which is about to be imported
 */
export function provideOwnPackage(path: string, source: string): void {
  if (isProvided || !NAMES_OWN.test(source) || findPackage(path) !== undefined) return;
  isProvided = true;
  const urls = Object.fromEntries(ENTRIES.map((name) => [name, pathToFileURL(resolveOwnImport(name) ?? '').href]));
  const hooks = `const urls = ${JSON.stringify(urls)};
    export async function resolve(specifier, context, next) {
      try {
        return await next(specifier, context);
      } catch (error) {
        if (error.code !== 'ERR_MODULE_NOT_FOUND' || !Object.hasOwn(urls, specifier)) throw error;
        return { url: urls[specifier], format: 'module', shortCircuit: true };
      }
    }`;
  module.register(`data:text/javascript,${encodeURIComponent(hooks)}`);
  onMissingRequire(ownPath);
}

const ENTRIES = ['gatefold', 'gatefold/client', 'gatefold/testing'];

/** Returns the path of the package.json of the package `gatefold` that Node finds from a file. */
function findPackage(from: string): string | undefined {
  try {
    return module.createRequire(from).resolve('gatefold/package.json');
  } catch {
    return undefined;
  }
}

export interface OtherPackage {
  readonly folder: string;
  readonly version: string;
}

/** Returns the package that the controllers of a folder import, when its version is not the running one. */
export function findOtherPackage(dir: string): OtherPackage | undefined {
  const path = findPackage(join(dir, 'Controller.js'));
  if (path === undefined || realpathSync(dirname(path)) === realpathSync(packagePath())) return undefined;
  const other = String(Object(JSON.parse(readFileSync(path, 'utf8'))).version);
  return other === version() ? undefined : { folder: dirname(path), version: other };
}
