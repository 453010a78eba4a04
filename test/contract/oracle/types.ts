// Compares the values that TypeScript's checker accepts for a type with those that our check accepts. Each difference
// must have one of the reasons in the table.
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { createCompiler } from '../../../src/contract/check/compile.ts';
import { CheckRun } from '../../../src/contract/check/run.ts';
import { findAmbiguity } from '../../../src/contract/check/union-safety.ts';
import type { Schema } from '../../../src/contract/contract.ts';
import { createSchemaWriter } from '../../../src/contract/schema/schema.ts';
import { createSourceFiles } from '../../../src/contract/source/files.ts';
import { parseModule } from '../../../src/contract/source/parse-module.ts';
import { Unsupported } from '../../../src/contract/source/source-error.ts';
import { createEvaluator } from '../../../src/contract/types/evaluate.ts';
import ts from '../../support/typescript.mjs';
import { createRandom, createValues, typeTextOf } from './values.ts';

/** Reasons for which tsc and our check differ on purpose. */
export const REASONS = {
  date: 'Date: tsc wants an object, JSON has a text; the operation gets the Date',
  weak: 'weak type: tsc refuses an object that shares no field with all-optional fields; that is a lint and no meaning',
  enum: 'enums are nominal in tsc, and not erasable in Node',
  absent: 'x: T | undefined may be left out, JSON has no undefined',
  empty: 'records of any and types of optional fields take objects alone, in tsc lists and texts, too',
  inherited: 'a field named toString or constructor counts when it was sent; tsc looks at Object.prototype',
  brand: 'a brand is a string',
  keys: 'records by number are objects, and not lists',
} as const;
export type Reason = keyof typeof REASONS;

export interface TypeResult {
  readonly name: string;
  readonly refused: string | undefined;
  readonly values: number;
  readonly accepted: number;
  readonly explained: Partial<Record<Reason, number>>;
  readonly unexplained: readonly string[];
}

const OPTIONS: ts.CompilerOptions = {
  strict: true,
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2022.d.ts'],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  allowImportingTsExtensions: true,
  noEmit: true,
  skipLibCheck: true,
  types: [],
};

/** The files of TypeScript itself, which take a second to parse and to bind. */
const libraries = new Map<string, ts.SourceFile | undefined>();

/** @param count of fitting values for each type; broken values and junk are added */
export function compareTypes(
  file: string,
  names: readonly string[],
  count: number,
  seed: number,
  read?: (path: string) => string,
): TypeResult[] {
  const path = resolve(file);
  const random = createRandom(seed);
  const virtual = `${dirname(path)}/__values.ts`;
  let valuesText = '';
  const host = ts.createCompilerHost(OPTIONS);
  const { getSourceFile, fileExists, readFile } = host;
  const files = new Map<string, ts.SourceFile | undefined>();
  const libraryFolder = host.getDefaultLibLocation?.() ?? '';
  const textOf = (name: string) => (name === virtual ? valuesText : (read?.(name) ?? readFile(name)));
  host.readFile = textOf;
  host.fileExists = (name) => name === virtual || name === path || fileExists(name);
  host.getSourceFile = (name, language) => {
    if (name === virtual) return ts.createSourceFile(name, valuesText, language, true);
    const known = name.startsWith(libraryFolder) ? libraries : files;
    if (!known.has(name))
      known.set(
        name,
        name === path && read ? ts.createSourceFile(name, read(name), language, true) : getSourceFile(name, language),
      );
    return known.get(name);
  };

  const first = ts.createProgram([path], OPTIONS, host);
  const firstChecker = first.getTypeChecker();
  const make = createValues(firstChecker, random);
  const values = names.map((name) => make.some(typeOf(first, path, name), count));
  const lines: string[] = [];
  values.forEach((list, i) => {
    list.forEach((value, j) => {
      lines.push(`export type V${i}_${j} = ${typeTextOf(value)};`);
    });
  });
  valuesText = lines.join('\n');

  const program = ts.createProgram([path, virtual], OPTIONS, host, first);
  const checker = program.getTypeChecker();
  const literals = new Map<string, ts.Type>();
  for (const statement of program.getSourceFile(virtual)?.statements ?? []) {
    if (!ts.isTypeAliasDeclaration(statement)) continue;
    literals.set(
      statement.name.text,
      checker.getDeclaredTypeOfSymbol(checker.getSymbolAtLocation(statement.name) as ts.Symbol),
    );
  }
  const ours = createChecks(path, textOf(path) as string);
  return names.map((name, i): TypeResult => {
    const list = values[i] as unknown[];
    const type = typeOf(program, path, name);
    const check = ours(name);
    if (typeof check === 'string')
      return { name, refused: check, values: 0, accepted: 0, explained: {}, unexplained: [] };
    const explained: Partial<Record<Reason, number>> = {};
    const unexplained: string[] = [];
    let accepted = 0;
    list.forEach((value, j) => {
      const truth = checker.isTypeAssignableTo(literals.get(`V${i}_${j}`) as ts.Type, type);
      const mistake = check(value);
      if (truth) accepted++;
      if (truth === (mistake === undefined)) return;
      const reason = explain(checker, value, type, truth);
      if (reason !== undefined) explained[reason] = (explained[reason] ?? 0) + 1;
      else
        unexplained.push(
          `${name}: tsc ${truth ? 'takes' : 'refuses'} ${JSON.stringify(value)}, the check: ${mistake ?? 'fine'}`,
        );
    });
    return { name, refused: undefined, values: list.length, accepted, explained, unexplained };
  });
}

function typeOf(program: ts.Program, path: string, name: string): ts.Type {
  const checker = program.getTypeChecker();
  const module = checker.getSymbolAtLocation(program.getSourceFile(path) as ts.SourceFile) as ts.Symbol;
  let symbol = checker.getExportsOfModule(module).find((one) => one.name === name) as ts.Symbol;
  if (symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  return checker.getDeclaredTypeOfSymbol(symbol);
}

const PLAIN_FILES = {
  textOf: (path: string) => readFileSync(path, 'utf8'),
  resolve: () => undefined,
  watch: () => {},
};

/** The check of each type, which gives the first mistake of a value; or the reason why the type is refused. */
export function createChecks(
  path: string,
  source: string,
): (name: string) => string | ((value: unknown) => string | undefined) {
  const files = createSourceFiles(PLAIN_FILES);
  const { evaluate } = createEvaluator();
  const module = parseModule(source);
  return (name) => {
    try {
      const writer = createSchemaWriter();
      const scope = { path, module, load: files.load, typeParams: new Map() };
      const schema: Schema = writer.write(evaluate({ kind: 'name', name, args: [], at: 0 }, scope));
      const ambiguous = findAmbiguity([schema], writer.defs);
      if (ambiguous !== undefined) return ambiguous;
      const check = createCompiler(writer.defs, false).compile(schema);
      return (value) => {
        const run = new CheckRun();
        check(value, run);
        const [mistake] = run.mistakes;
        return mistake === undefined ? undefined : `${mistake.pointer} ${mistake.message}`;
      };
    } catch (error) {
      if (error instanceof Unsupported) return error.message;
      throw error;
    }
  };
}

/** Finds the reason for a difference in the parts of the value. */
export function explain(
  checker: ts.TypeChecker,
  value: unknown,
  type: ts.Type,
  truth: boolean,
  depth = 0,
): Reason | undefined {
  if (depth > 8) return undefined;
  const inner = (child: unknown, of: ts.Type) => explain(checker, child, of, truth, depth + 1);
  const first = (reasons: readonly (Reason | undefined)[]) => reasons.find((reason) => reason !== undefined);
  if (type.flags & (ts.TypeFlags.Enum | ts.TypeFlags.EnumLiteral)) return 'enum';
  if (type.isUnion()) return first(type.types.map((part) => inner(value, part)));
  if (type.symbol?.name === 'Date') return 'date';
  const properties = checker.getPropertiesOfType(type);
  const indexes = checker.getIndexInfosOfType(type);
  const isStructure =
    type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection) &&
    !checker.isArrayType(type) &&
    !checker.isTupleType(type);
  if (truth && isStructure && (typeof value !== 'object' || value === null || Array.isArray(value))) {
    if (properties.some(({ name }) => name.startsWith('__'))) return 'brand';
    if (indexes.some(({ keyType }) => keyType.flags & ts.TypeFlags.Number)) return 'keys';
    return properties.every(({ flags }) => flags & ts.SymbolFlags.Optional) || indexes.length > 0
      ? 'empty'
      : 'inherited';
  }
  if (typeof value !== 'object' || value === null) {
    return type.isIntersection() && properties.some(({ name }) => name.startsWith('__')) ? 'brand' : undefined;
  }
  if (Array.isArray(value)) {
    const items =
      checker.isArrayType(type) || checker.isTupleType(type) ? checker.getTypeArguments(type as ts.TypeReference) : [];
    return first(value.flatMap((child) => items.map((item) => inner(child, item))));
  }
  const keys = Object.keys(value);
  const isWeak =
    properties.length > 0 && properties.every(({ flags }) => flags & ts.SymbolFlags.Optional) && indexes.length === 0;
  if (isWeak && keys.length > 0 && !keys.some((key) => properties.some(({ name }) => name === key))) return 'weak';
  for (const property of properties) {
    const of = checker.getTypeOfSymbol(property);
    if (Object.hasOwn(value, property.name)) {
      const reason = inner((value as Record<string, unknown>)[property.name], of);
      if (reason !== undefined) return reason;
    } else if (property.name in Object.prototype) return 'inherited';
    else if (
      !(property.flags & ts.SymbolFlags.Optional) &&
      of.isUnion() &&
      of.types.some(({ flags }) => flags & ts.TypeFlags.Undefined)
    )
      return 'absent';
  }
  return first(
    indexes.flatMap((index) => keys.map((key) => inner((value as Record<string, unknown>)[key], index.type))),
  );
}
