// Adds to an error of Node what to write instead.
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { statOf } from '../../base/fingerprint.ts';
import { nearestManifest } from '../../base/manifest.ts';
import { readSourceOrEmpty } from '../../base/source-file.ts';
import type { Place } from './load-error.ts';

const INDEX_FILES = ['index.ts', 'index.mjs', 'index.js'];
/** The keys are the words of the message "TypeScript enum is not supported in strip-only mode" of Node. */
const REMEDIES: Readonly<Record<string, string>> = {
  enum: "write a union of literals: type State = 'open' | 'paid'",
  'parameter property': 'declare the field and set it in the constructor',
  'namespace declaration': 'write a module of its own, and import it',
  'import equals declaration': "write import name from 'module'",
  'export assignment': 'write export default',
};

/** @param file the file that the mistake is in */
export function withAdvice(reason: string, file: string, place: Place = {}): string {
  const [, kind = ''] = /TypeScript (.+?) is not supported in strip-only mode/.exec(reason) ?? [];
  const advice =
    adviceOnImport(reason, file) ??
    adviceOnType(reason, file) ??
    // No package has such a name.
    (/Cannot find package '[@~](?:\/|')/.test(reason) ? ALIAS_REMEDY : undefined) ??
    REMEDIES[kind] ??
    (isDecorator(reason, file, place) ? DECORATOR_REMEDY : undefined);
  return advice === undefined ? reason : `${reason}; ${advice}`;
}

const ALIAS_REMEDY =
  "Node reads no paths of tsconfig.json: write imports in package.json, such as { '#lib/*': './lib/*' }, and import '#lib/…'";
const DECORATOR_REMEDY = 'Node cannot run decorators: call the function instead, such as _before or _around of a group';

/** Node leaves a decorator in the text, and V8 does not know it. */
function isDecorator(reason: string, file: string, { at, column }: Place): boolean {
  if (!reason.includes('Invalid or unexpected token') || at === undefined || column === undefined) return false;
  const line = readSourceOrEmpty(file).split('\n')[Number(at.slice(file.length + 1)) - 1];
  return line?.[column - 1] === '@';
}

/** Finds the file that an import of `./helper`, `./helper.js` or `./folder` probably means. */
function adviceOnImport(reason: string, file: string): string | undefined {
  const [, path] = /Cannot find module '([^']+)'|Directory import '([^']+)'/.exec(reason)?.filter(Boolean) ?? [];
  if (path === undefined || !/^(?:\/|[A-Za-z]:\\)/.test(path)) return undefined;
  const stem = path.replace(/\.[cm]?js$/, '');
  const candidates = [`${stem}.ts`, `${stem}.mjs`, `${stem}.js`, ...INDEX_FILES.map((name) => join(path, name))];
  const target = candidates.find((candidate) => candidate !== path && statOf(candidate)?.isFile() === true);
  if (target === undefined) return undefined;
  const specifier = relative(realpathSync(dirname(file)), target).replaceAll('\\', '/');
  return `write the whole name: '${specifier.startsWith('.') ? '' : './'}${specifier}'`;
}

function adviceOnType(reason: string, file: string): string | undefined {
  const [, specifier = '', name = ''] =
    /module '([^']+)' does not provide an export named '([^']+)'/.exec(reason) ?? [];
  if (name === '') return undefined;
  const cure = `write import { type ${name} } from '${specifier}'`;
  if (!specifier.startsWith('.')) return `if ${name} is a type, ${cure}`;
  const path = resolve(dirname(file), specifier);
  const isType = existsSync(path) && new RegExp(`\\b(?:interface|type)\\s+${name}\\b`).test(readSourceOrEmpty(path));
  return isType ? `${name} is a type: ${cure}` : undefined;
}

/**
 * Matches the errors of Node, tsx and esbuild for an ES module that is loaded as CommonJS. The field `type` of the
 * nearest package.json decides that, which the errors do not say. `npm init` writes "commonjs".
 */
const TAKEN_FOR_COMMONJS =
  /Unexpected token 'export'|Cannot use (?:import statement|'import\.meta') outside a module|top level bodies of modules|"cjs" output format/;

/** Returns the cause with its cure, and the package.json to change; undefined when package.json is not the cause. */
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
