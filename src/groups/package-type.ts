// What Node takes a `.ts` or `.js` file for: the nearest package.json above it says so. `npm init` writes "commonjs"
// there, and then a controller as everybody writes it, with `import` and `export`, is a syntax error that names
// neither.
import { dirname, join } from 'node:path';
import { nearestManifest } from '../base/manifest.ts';

export interface PackageType {
  /** Of the package.json. */
  readonly path: string;
  /** Undefined: it does not say. */
  readonly type: string | undefined;
}

/** Undefined when there is no package.json above. */
export function readPackageType(file: string): PackageType | undefined {
  const found = nearestManifest(dirname(file));
  return found && { path: found.path, type: typeof found.fields.type === 'string' ? found.fields.type : undefined };
}

const TAKEN_FOR_COMMONJS =
  /Unexpected token 'export'|Cannot use (?:import statement|'import\.meta') outside a module|top level bodies of modules|"cjs" output format/;

/**
 * What is wrong and what to do, in one line, and the package.json that is to change, when that is why a module does not
 * load.
 */
export function explainPackageType(reason: string, file: string): { reason: string; dueTo: string } | undefined {
  if (!TAKEN_FOR_COMMONJS.test(reason)) return undefined;
  const found = readPackageType(file);
  if (found?.type === 'module') return undefined;
  return {
    reason: `Node takes it for CommonJS, because ${whyCommonJs(found)}, and it has import or export: ${whatToDo(found)}`,
    dueTo: found?.path ?? join(dirname(file), 'package.json'),
  };
}

export function whyCommonJs(found: PackageType | undefined): string {
  if (found === undefined) return 'there is no package.json above it';
  return found.type === undefined
    ? `${found.path} has no "type"`
    : `${found.path} says "type": ${JSON.stringify(found.type)}`;
}

export function whatToDo(found: PackageType | undefined): string {
  return found === undefined
    ? 'make one with "type": "module"'
    : 'write "type": "module" there (npm pkg set type=module)';
}
