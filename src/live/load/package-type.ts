// Explains syntax errors that have their cause in package.json. For a `.ts` or `.js` file, the field `type` of the
// nearest package.json above it says whether Node loads the file as CommonJS or as an ES module. `npm init` writes
// "commonjs". In a CommonJS file, `import` and `export` are syntax errors, and such an error does not name the cause.
import { dirname, join } from 'node:path';
import { nearestManifest } from '../../base/manifest.ts';

export interface PackageType {
  readonly path: string;
  /** The field `type`, or undefined when it is missing or no text. */
  readonly type: string | undefined;
}

/** Reads the nearest package.json above a file. Returns undefined where there is none. */
export function readPackageType(file: string): PackageType | undefined {
  const manifest = nearestManifest(dirname(file));
  if (manifest === undefined) return undefined;
  const { type } = manifest.fields;
  return { path: manifest.path, type: typeof type === 'string' ? type : undefined };
}

/** Matches the errors of Node, tsx and esbuild for an ES module that is loaded as CommonJS. */
const TAKEN_FOR_COMMONJS =
  /Unexpected token 'export'|Cannot use (?:import statement|'import\.meta') outside a module|top level bodies of modules|"cjs" output format/;

/**
 * @param message the error of a module that did not load
 * @returns a line with the cause and the cure, and the path of the package.json that must change; undefined when
 *   package.json is not the cause
 */
export function explainPackageType(message: string, file: string): { reason: string; dueTo: string } | undefined {
  if (!TAKEN_FOR_COMMONJS.test(message)) return undefined;
  const packageType = readPackageType(file);
  if (packageType?.type === 'module') return undefined;
  const why = whyCommonJs(packageType);
  const syntax = /top level bodies|Top-level await/.test(message)
    ? 'await outside of an async function'
    : 'import or export';
  return {
    reason: `Node takes it for CommonJS, because ${why}, and it has ${syntax}: ${cureOf(packageType)}`,
    dueTo: packageType?.path ?? join(dirname(file), 'package.json'),
  };
}

function whyCommonJs(packageType: PackageType | undefined): string {
  if (packageType === undefined) return 'there is no package.json above it';
  const { path, type } = packageType;
  return type === undefined ? `${path} has no "type"` : `${path} says "type": ${JSON.stringify(type)}`;
}

function cureOf(packageType: PackageType | undefined): string {
  return packageType === undefined
    ? 'make one with "type": "module"'
    : 'write "type": "module" there (npm pkg set type=module)';
}
