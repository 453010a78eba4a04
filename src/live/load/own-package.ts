// Provides the package `gatefold` to files for which Node finds no installed package of this name, as in a controllers
// folder outside of any project. Such a file imports the running package. Any other file imports the installed package.
import { readFileSync, realpathSync } from 'node:fs';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { attempt, errorCode } from '../../base/failure.ts';
import { onMissingRequire } from '../../base/node-internals.ts';
import { packagePath, resolveOwnImport, version } from '../../own-files.ts';

const OWN_SPECIFIER = /^gatefold(?:\/|$)/;
const QUOTED_OWN_SPECIFIER = /(['"])gatefold(?:\/[\w./-]+)?\1/;

/** Returns the URL of a module of the running package, if `error` says that the import has found no package. */
export function ownUrl(specifier: string, error: unknown): string | undefined {
  const path = ownPath(specifier, error);
  return path && pathToFileURL(path).href;
}

function ownPath(specifier: string, error: unknown): string | undefined {
  const isMissing = /^(?:ERR_)?MODULE_NOT_FOUND$/.test(errorCode(error) ?? '');
  return isMissing && OWN_SPECIFIER.test(specifier) ? resolveOwnImport(specifier) : undefined;
}

let isProvided = false;

/**
 * Makes imports and requires of `gatefold` in this process use the running package when they find no other package.
 * Only Node before 22.15 needs this function. In these versions, a hook for imports starts a thread, so the hook is
 * registered only when a source imports `gatefold`.
 *
 * @param source the text of `path`, which is about to be imported
 */
export function provideOwnPackage(path: string, source: string): void {
  if (isProvided || !QUOTED_OWN_SPECIFIER.test(source) || findPackage(path) !== undefined) return;
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

function findPackage(from: string): string | undefined {
  return attempt(() => module.createRequire(from).resolve('gatefold/package.json'), undefined);
}

/** Returns the package that the controllers of a folder import, when its version is not the running one. */
export function findOtherPackage(dir: string): { readonly folder: string; readonly version: string } | undefined {
  const path = findPackage(join(dir, 'Controller.js'));
  if (path === undefined || realpathSync(dirname(path)) === realpathSync(packagePath())) return undefined;
  const otherVersion = String(Object(JSON.parse(readFileSync(path, 'utf8'))).version);
  return otherVersion === version() ? undefined : { folder: dirname(path), version: otherVersion };
}
