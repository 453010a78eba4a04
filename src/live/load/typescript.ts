// Lets this process load TypeScript. Node 22.18 and later strip types by themselves. Older versions need `tsx`.
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { attempt } from '../../base/failure.ts';
import { placesOfPackage } from './resolutions.ts';

export function typescriptSupport(): 'node' | 'tsx' | 'none' {
  if (process.features.typescript) return 'node';
  const require = module.createRequire(import.meta.url);
  return attempt(() => require.resolve('tsx/esm/api'), '') === '' ? 'none' : 'tsx';
}

/** Jest and Vitest compile the files of a test themselves, on every Node. Vite gives `import.meta` an `env`. */
const isCompiledByRunner = process.env.JEST_WORKER_ID !== undefined || 'env' in import.meta;

const tsxListeners = new Set<(path: string) => void>();
let tsxRegistration: Promise<void> | undefined;

/** Loads the compiler, `tsx` or Node's own, for which the first load of a small folder would mostly wait. */
export async function prepareTypeScript(): Promise<void> {
  if (isCompiledByRunner) return;
  const support = typescriptSupport();
  if (support === 'node') await loadNodeCompiler();
  if (support === 'tsx') await useTsx();
}

/** The URL of a module without code. Node cannot load this media type, so no other module has such a URL. */
const EMPTY_MODULE = 'data:text/gatefold-empty,';

/** Makes Node load its compiler of TypeScript now, and not with the first `.ts` file. */
async function loadNodeCompiler(): Promise<void> {
  const hooks = module.registerHooks?.({
    load: (url, context, nextLoad) =>
      url === EMPTY_MODULE ? { format: 'module-typescript', source: '', shortCircuit: true } : nextLoad(url, context),
  });
  if (hooks === undefined) return;
  try {
    await import(EMPTY_MODULE);
  } finally {
    hooks.deregister();
  }
}

/**
 * Makes this process load `.ts` files.
 *
 * @param onLoaded called with the path of each file that `tsx` loads, and with the places where `tsx` is missing
 * @throws Error with a message of one line that says what to do, when this Node cannot load TypeScript
 */
export async function enableTypeScript(onLoaded: (path: string) => void): Promise<void> {
  if (isCompiledByRunner) return;
  if (typescriptSupport() === 'none') {
    placesOfPackage(`Cannot find package 'tsx'`, fileURLToPath(import.meta.url)).forEach(onLoaded);
    throw new Error(
      `Node ${process.versions.node} cannot load TypeScript: run Node 22.18 or later, or install tsx beside gatefold (npm install tsx), or write the controller as .js`,
    );
  }
  if (typescriptSupport() === 'node') return;
  tsxListeners.add(onLoaded);
  await useTsx();
}

function useTsx(): Promise<void> {
  tsxRegistration ??= registerTsx();
  return tsxRegistration;
}

async function registerTsx(): Promise<void> {
  // `node --import tsx` has already registered `tsx`, and a second registration would transform each file twice. Only
  // import-scan.ts finds imports then, because `onImport` below is never called.
  const options = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`;
  if (/(?:--import|--loader|--require|-r)[= ]\S*\btsx\b/.test(options)) return;
  const [{ register }, commonjs] = await Promise.all([import('tsx/esm/api'), import('tsx/cjs/api')]);
  // Without `"type": "module"` in package.json, a `.ts` file counts as CommonJS, and `tsx` needs both registrations.
  commonjs.register();
  register({
    onImport(url) {
      if (!url.startsWith('file:')) return;
      const path = fileURLToPath(url.replace(/\?.*$/, ''));
      for (const listener of tsxListeners) listener(path);
    },
  });
}
