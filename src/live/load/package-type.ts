// Explains syntax errors that have their cause in package.json. For a `.ts` or `.js` file, the field `type` of the
// nearest package.json above it says whether Node loads the file as CommonJS or as an ES module. `npm init` writes
// "commonjs". In a CommonJS file, `import` and `export` are syntax errors, and such an error does not name the cause.
import { dirname, join } from 'node:path';
import { nearestManifest } from '../../base/manifest.ts';

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
  const manifest = nearestManifest(dirname(file));
  if (manifest?.fields.type === 'module') return undefined;
  const [why, cure] = explainCommonJs(manifest);
  const syntax = /top level bodies|Top-level await/.test(message)
    ? 'await outside of an async function'
    : 'import or export';
  return {
    reason: `Node takes it for CommonJS, because ${why}, and it has ${syntax}: ${cure}`,
    dueTo: manifest?.path ?? join(dirname(file), 'package.json'),
  };
}

function explainCommonJs(manifest: ReturnType<typeof nearestManifest>): readonly [why: string, cure: string] {
  if (manifest === undefined) return ['there is no package.json above it', 'make one with "type": "module"'];
  const { path, fields } = manifest;
  const says = typeof fields.type === 'string' ? `says "type": ${JSON.stringify(fields.type)}` : 'has no "type"';
  return [`${path} ${says}`, 'write "type": "module" there (npm pkg set type=module)'];
}
