// The project of the author, as its own TypeScript sees it, for `gatefold contracts`. A type is only written out when
// nothing that checks a value would be lost: tags, decorators and schemas are no part of a type.
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type ts from 'typescript-5';
import { digestOf, listGlobalFiles, nameFrom, type Source, versionOf } from '../../contract/made-types.ts';
import { findUnreadConstraint } from '../../contract/source/constraint-tags.ts';
import type { WantedType } from '../../contract/source/source-error.ts';
import {
  declarationsOf,
  isLibrary,
  isOwn,
  openTypeScript,
  packageOf,
  pathsOf,
  realPathOf,
  type TypeScript,
} from './type-script.ts';

export interface TypeProject extends TypeScript {
  nodeAt(wanted: WantedType): ts.TypeNode | undefined;
  /** Lists the own files and packages that the types of a file can depend on. */
  sourcesOf(path: string): Source[];
}

/** The nodes of TypeScript for each kind of the reader (contract/source/syntax.ts). */
const KINDS: Readonly<Record<string, readonly (string | undefined)[]>> = {
  name: ['TypeReference', 'ImportType', 'ExpressionWithTypeArguments'],
  typeof: ['TypeQuery'],
  indexed: ['IndexedAccessType'],
  union: ['UnionType'],
  keyof: ['TypeOperator'],
  unsupported: ['ConditionalType', 'MappedType'],
};

/** @throws CommandError */
export async function openTypeProject(folder: string, wanted: readonly WantedType[]): Promise<TypeProject> {
  const typeScript = await openTypeScript(folder, [...new Set(wanted.map(({ path }) => path))]);
  const { ts, program, checker, configPath } = typeScript;
  const nameOf = (path: string) => nameFrom(folder, path);
  const globals = listGlobalFiles(configPath === undefined ? folder : dirname(configPath));

  function sourcesOf(path: string): Source[] {
    const sources = new Map<string, Source>();
    const add = (kind: Source[0], name: string, print: string | undefined) => {
      if (print !== undefined) sources.set(`${kind} ${name}`, [kind, name, print]);
    };
    if (configPath !== undefined) add('config', nameOf(configPath), digestOf(readFileSync(configPath, 'utf8')));
    const paths = new Set([path, ...globals]);
    for (const path of paths) {
      const name = packageOf(path);
      if (name !== undefined) add('package', name, versionOf(folder, name));
      if (name !== undefined || isLibrary(path)) continue;
      const file = program.getSourceFile(path);
      add('file', nameOf(path), digestOf(file?.text ?? readFileSync(path, 'utf8')));
      // `import('./x.ts')` in a type or in code counts, too.
      for (const specifier of (file as { imports?: ts.Node[] } | undefined)?.imports ?? []) {
        const symbol = checker.getSymbolAtLocation(specifier);
        for (const imported of pathsOf(symbol)) paths.add(realPathOf(imported));
      }
    }
    return [...sources.values()];
  }

  function nodeAt({ path, at, kind }: WantedType): ts.TypeNode | undefined {
    const file = program.getSourceFile(path);
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

/** Properties of the schemas of libraries: Standard Schema, TypeBox, zod, superstruct, yup, joi, io-ts. */
const SCHEMA_MARKS = /^(?:~standard|~kind|__@Kind.*|safeParse|refiner|validateSync|validateAsync|_A)$/;
const CONSTRAINED_ALIASES = /^(?:Int|Email|Uuid|DateTime|DateOnly|Uri)$/;

/**
 * Returns what a written type would lose, such as `the tag @minLength`: a check in the author's code that the type is
 * made of. The code of functions counts, too, because their results can have inferred types.
 */
export function findLoss(start: ts.Node, project: TypeProject): string | undefined {
  const { ts, checker } = project;
  const pending = new Set<ts.Node>([start]);
  let loss: string | undefined;
  const visit = (node: ts.Node): void => {
    if (loss !== undefined) return;
    if (ts.isDecorator(node)) loss = 'a decorator';
    else if (ts.isIdentifier(node)) visitName(node);
    else if (ts.isCallExpression(node) && isSchema(checker.getTypeAtLocation(node))) loss = `the schema ${text(node)}`;
    node.forEachChild(visit);
  };
  function visitName(node: ts.Identifier): void {
    let symbol = checker.getSymbolAtLocation(node);
    if (symbol !== undefined && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
    if (symbol === undefined || pathsOf(symbol).some(isLibrary)) return;
    const own = pathsOf(symbol).every(isOwn);
    for (const declaration of declarationsOf(symbol)) {
      const isConstrained = ts.isTypeAliasDeclaration(declaration) && CONSTRAINED_ALIASES.test(declaration.name.text);
      if (isConstrained) loss = `the constraint ${declaration.name.text}`;
      if (!own && ts.isTypeAliasDeclaration(declaration)) visitQueries(declaration);
      if (own && !ts.isSourceFile(declaration))
        pending.add(ts.isBindingElement(declaration) ? declaration.parent.parent : declaration);
    }
    if (symbol.flags & ts.SymbolFlags.Value && isSchema(checker.getTypeOfSymbolAtLocation(symbol, node)))
      loss = `the schema ${node.text}`;
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
