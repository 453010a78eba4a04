// The project of the author, as its own TypeScript sees it, for `gatefold contracts`. A type is only written out when
// nothing that checks a value would be lost: tags, decorators and schemas are no part of a type.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type ts from 'typescript-5';
import { statOf } from '../../base/fingerprint.ts';
import { nearestManifest } from '../../base/manifest.ts';
import { readSourceOrEmpty } from '../../base/source-file.ts';
import * as madeTypes from '../../contract/made-types.ts';
import { findUnreadConstraint } from '../../contract/source/constraint-tags.ts';
import type { WantedType } from '../../contract/source/source-error.ts';
import {
  declarationsOf,
  homeOf,
  isLibrary,
  isOwn,
  openTypeScript,
  packageOf,
  pathsOf,
  realPathOf,
} from './type-script.ts';

export type TypeProject = Awaited<ReturnType<typeof openTypeProject>>;

/** The nodes of TypeScript for each kind of the reader (contract/source/syntax.ts). */
const KINDS: Readonly<Record<string, readonly (string | undefined)[]>> = {
  name: ['TypeReference', 'ImportType', 'ExpressionWithTypeArguments'],
  typeof: ['TypeQuery'],
  indexed: ['IndexedAccessType'],
  union: ['UnionType'],
  keyof: ['TypeOperator'],
  unsupported: ['ConditionalType', 'MappedType'],
  mapped: ['MappedType'],
};

/** Whether TypeScript can write a refused type in another way. It writes a tuple as the reader has refused it. */
export const isWritable = ({ kind }: WantedType): boolean => Object.hasOwn(KINDS, kind);

/** @throws CommandError */
export async function openTypeProject(folder: string, wanted: readonly WantedType[]) {
  const typeScript = await openTypeScript(folder, [...new Set(wanted.map(({ path }) => path))]);
  const { ts, program, checker, configs, rootNames, fileNames } = typeScript;
  const nameOf = (path: string) => madeTypes.nameFrom(folder, path);
  const [configPath] = configs;
  const listed = madeTypes.listGlobalFiles(configPath === undefined ? folder : dirname(configPath));
  const globals = new Set([
    ...listed,
    ...rootNames.filter((path) => isOwn(path) && madeTypes.isGlobalFile(path)).map(realPathOf),
  ]);
  const inPackages = fileNames.filter((path) => !isLibrary(path) && packageOf(path) !== undefined);
  const homes = new Set(inPackages.map(homeOf));
  /** The sources of all types. A generated package has no version. */
  const common = [...configs, ...inPackages.filter((path) => statOf(join(homeOf(path), 'package.json')) === undefined)];

  const installed = new Map<string, madeTypes.Installed | undefined>();
  const find = (name: string): madeTypes.Installed | undefined => {
    if (!installed.has(name)) installed.set(name, madeTypes.findPackage(folder, name));
    return installed.get(name);
  };

  /**
   * Lists the own files and packages that the types of a file can depend on.
   *
   * @param globalPackages the packages whose global types are used
   */
  function sourcesOf(path: string, globalPackages: ReadonlySet<string>): madeTypes.Source[] {
    const sources = new Map<string, madeTypes.Source>();
    const homesOfSources = new Set<string>();
    const add = (...[kind, name, print]: madeTypes.Source) => sources.set(`${kind} ${name}`, [kind, name, print]);
    /** @param from a package, or a folder that begins with `./` */
    const addPackage = (name: string, from = '') => {
      const nested = from === '' ? undefined : `${from}/node_modules/${name}`;
      const place = nested === undefined || find(nested)?.home === find(name)?.home ? name : nested;
      const found = find(place);
      if (found === undefined || homesOfSources.has(found.home)) return;
      homesOfSources.add(found.home);
      add('package', place, found.print);
      const { dependencies, peerDependencies } = found.manifest;
      for (const dependency of Object.keys({ ...(dependencies as object), ...(peerDependencies as object) }))
        if (homes.has(find(`${place}/node_modules/${dependency}`)?.home ?? '')) addPackage(dependency, place);
    };
    for (const config of common)
      add('config', nameOf(realPathOf(config)), madeTypes.digestOf(readFileSync(config, 'utf8')));
    for (const name of globalPackages) addPackage(name);
    const paths = new Set([path, ...globals]);
    for (const path of paths) {
      const file = program.getSourceFile(path);
      add('file', nameOf(path), madeTypes.digestOf(file?.text ?? readFileSync(path, 'utf8')));
      for (const { name, imported } of importsOf(path, file)) {
        if (name !== undefined) addPackage(name, `./${nameOf(dirname(path))}`);
        if (isOwn(imported) && !madeTypes.isMadeFile(imported)) paths.add(realPathOf(imported));
      }
    }
    return [...sources.values()];
  }

  /** By path: the files that a file imports, each with the name of its package. Many types have the same sources. */
  const imports = new Map<string, readonly { readonly name: string | undefined; readonly imported: string }[]>();
  function importsOf(path: string, file: ts.SourceFile | undefined) {
    // `import('./x.ts')` in a type or in code counts, too.
    const { imports: specifiers = [] } = Object(file) as { imports?: ts.StringLiteral[] };
    const known =
      imports.get(path) ??
      specifiers.flatMap((specifier) => {
        // An own file can be in a linked package.
        const [written] = /^(?:@[^/]+\/)?[^/.#]+/.exec(specifier.text) ?? [];
        const found = pathsOf(checker.getSymbolAtLocation(specifier));
        return found.map((imported) => ({ name: packageOf(imported) ?? written, imported }));
      });
    imports.set(path, known);
    return known;
  }

  function nodeAt({ path, at: place, kind }: WantedType): ts.TypeNode | undefined {
    const file = program.getSourceFile(path);
    const at = readSourceOrEmpty(path).startsWith('\ufeff') ? place - 1 : place;
    let found: ts.TypeNode | undefined;
    const visit = (node: ts.Node): void => {
      if (node.pos > at || node.end <= at) return;
      if (found === undefined && node.getStart(file) === at && KINDS[kind]?.includes(ts.SyntaxKind[node.kind]) === true)
        found = node as ts.TypeNode;
      node.forEachChild(visit);
    };
    if (file !== undefined) visit(file);
    return found;
  }

  return { ...typeScript, nodeAt, sourcesOf };
}

/** Properties of Standard Schema, TypeBox, zod, superstruct, yup, joi, io-ts; runtypes, myzod, typanion, valita. */
const SCHEMA_MARKS =
  /^(?:~standard|~kind|__@Kind.*|safeParse|refiner|validateSync|validateAsync|_A|with(?:Constraint|Predicate)|__trait|_toTerminals)$/;
const isOfGatefold = (path: string): boolean => nearestManifest(dirname(path))?.fields.name === 'gatefold';
const CONSTRAINED_ALIASES = /^(?:Int|Email|Uuid|DateTime|DateOnly|Uri)$/;

/**
 * Returns what a written type would lose, such as `the tag @minLength`: a check in the author's code that the type is
 * made of. The code of functions counts, too, because their results can have inferred types.
 *
 * @param packages gets the packages whose types are named
 */
export function findLoss(start: ts.Node, project: TypeProject, packages: Set<string>): string | undefined {
  const { ts, checker, program, fileNames } = project;
  const pending = new Set<ts.Node>([start]);
  let loss: string | undefined;
  const visit = (node: ts.Node): void => {
    if (loss !== undefined) return;
    if (ts.isDecorator(node)) loss = 'a decorator';
    else if (ts.isIdentifier(node)) visitName(node);
    else if (ts.isImportTypeNode(node) && node.qualifier === undefined) visitModule(node.argument);
    else if (ts.isCallExpression(node) && isSchema(checker.getTypeAtLocation(node))) loss = `the schema ${text(node)}`;
    node.forEachChild(visit);
  };
  /** `typeof import('./models.ts')` as a whole. Its fields can be taken by texts: `['User']`. */
  function visitModule(node: ts.Node): void {
    const specifier = ts.isLiteralTypeNode(node) ? node.literal : node;
    const symbol = checker.getSymbolAtLocation(specifier);
    for (const declaration of symbol === undefined ? [] : declarationsOf(symbol))
      if (pathsOf(symbol).every(isOwn)) pending.add(declaration);
  }
  function visitName(node: ts.Identifier): void {
    let symbol = checker.getSymbolAtLocation(node);
    if (symbol !== undefined && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
    if (symbol === undefined || pathsOf(symbol).some(isLibrary)) return;
    const own = pathsOf(symbol).every(isOwn);
    if (pathsOf(symbol).some(madeTypes.isMadeFile)) loss = `the sources of a type in ${madeTypes.MADE_TYPES_FILE}`;
    for (const path of pathsOf(symbol)) if (!isOwn(path)) visitPackage(packageOf(path) as string);
    for (const declaration of declarationsOf(symbol)) {
      const alias = ts.isTypeAliasDeclaration(declaration) ? declaration.name.text : '';
      if (CONSTRAINED_ALIASES.test(alias) && pathsOf(symbol).every(isOfGatefold)) loss = `the constraint ${alias}`;
      if (!own && ts.isTypeAliasDeclaration(declaration)) visitQueries(declaration);
      if (own && !(ts.isSourceFile(declaration) && isQualifier(node)))
        pending.add(ts.isBindingElement(declaration) ? declaration.parent.parent : declaration);
    }
    if (symbol.flags & ts.SymbolFlags.Value && isSchema(checker.getTypeOfSymbolAtLocation(symbol, node)))
      loss = `the schema ${node.text}`;
  }
  /** `declare module 'models' { … }` in an own file adds to the types of the package. */
  function visitPackage(name: string): void {
    if (packages.has(name)) return;
    packages.add(name);
    const statements = fileNames.filter(isOwn).flatMap((path) => program.getSourceFile(path)?.statements ?? []);
    for (const statement of statements)
      if (ts.isModuleDeclaration(statement) && `${statement.name.text}/`.startsWith(`${name}/`)) pending.add(statement);
  }
  /** Whether the name is only the `models` of `models.User`. */
  function isQualifier(node: ts.Node): boolean {
    const { parent } = node;
    if (ts.isQualifiedName(parent)) return parent.left === node || isQualifier(parent);
    return ts.isPropertyAccessExpression(parent) && (parent.expression === node || isQualifier(parent));
  }
  /** A package, too, can infer a type from a schema. */
  function visitQueries(node: ts.Node): void {
    if (ts.isTypeQueryNode(node) && isSchema(checker.getTypeAtLocation(node.exprName)))
      loss = `the schema ${text(node.exprName)}`;
    node.forEachChild(visitQueries);
  }
  const isSchema = (type: ts.Type): boolean =>
    checker.getPropertiesOfType(type).some(({ name }) => SCHEMA_MARKS.test(name)) ||
    pathsOf(type.getSymbol()).some((path) => /[\\/]effect[\\/].*[\\/]Schema/.test(path));
  const text = (node: ts.Node) => node.getText().replace(/\s+/g, ' ').slice(0, 40);
  for (const node of pending) {
    const source = node === start ? node.getText() : node.getFullText();
    for (const [comment] of source.matchAll(/\/\*\*[\s\S]*?\*\//g)) {
      // A default, too, is lost with its tag.
      const [, tag] = /@(\w+)/.exec(findUnreadConstraint(comment) ?? '') ?? /@(default|trim)\b/.exec(comment) ?? [];
      if (tag !== undefined) loss ??= `the tag @${tag}`;
    }
    visit(node);
    if (loss !== undefined) return loss;
  }
  return undefined;
}
