// The nearest package.json above a `.ts` or `.js` file says whether Node loads it as CommonJS or as an ES module. `npm
// init` writes "commonjs". A controller with `import` and `export` is then a syntax error, and the error does not name
// the cause. This file finds the cause.
import { dirname, join } from 'node:path';
import { nearestManifest } from '../base/manifest.ts';

export interface PackageType {
  /** The path of the package.json. */
  readonly path: string;
  /** The field `type`, or undefined when the package.json has no such field. */
  readonly type: string | undefined;
}

/** Reads the nearest package.json above a file. Returns undefined where there is none. */
export function readPackageType(file: string): PackageType | undefined {
  const manifest = nearestManifest(dirname(file));
  if (manifest === undefined) return undefined;
  const { type } = manifest.fields;
  return { path: manifest.path, type: typeof type === 'string' ? type : undefined };
}

const TAKEN_FOR_COMMONJS =
  /Unexpected token 'export'|Cannot use (?:import statement|'import\.meta') outside a module|top level bodies of modules|"cjs" output format/;

/**
 * Explains in one line a module that does not load because of its package.json, with the cure and the path of the
 * package.json. Returns undefined for any other reason.
 */
export function explainPackageType(reason: string, file: string): { reason: string; dueTo: string } | undefined {
  if (!TAKEN_FOR_COMMONJS.test(reason)) return undefined;
  const packageType = readPackageType(file);
  if (packageType?.type === 'module') return undefined;
  const why = whyCommonJs(packageType);
  return {
    reason: `Node takes it for CommonJS, because ${why}, and it has import or export: ${whatToDo(packageType)}`,
    dueTo: packageType?.path ?? join(dirname(file), 'package.json'),
  };
}

export function whyCommonJs(packageType: PackageType | undefined): string {
  if (packageType === undefined) return 'there is no package.json above it';
  const { path, type } = packageType;
  return type === undefined ? `${path} has no "type"` : `${path} says "type": ${JSON.stringify(type)}`;
}

export function whatToDo(packageType: PackageType | undefined): string {
  return packageType === undefined
    ? 'make one with "type": "module"'
    : 'write "type": "module" there (npm pkg set type=module)';
}
