// Prints a type of TypeScript's checker as plain TypeScript that Gatefold's own reader understands: literals, objects,
// lists and unions, without names but those of types that contain themselves.
import type ts from 'typescript-5';
import { sortedBy } from '../../base/sorted-by.ts';
import type { TypeProject } from './type-project.ts';
import { baseOf, declarationsOf, elementFlagsOf, isLibrary, partsOf, pathsOf } from './type-script.ts';

/** Thrown for a type that no JSON has, or that would lose a check. */
export class Unprintable extends Error {}

const MAX_TYPES = 3000;
const MAX_NESTING = 100;
/** `NoTruncation` of the flags of `typeToString`. */
const NO_TRUNCATION = 1;
/** Global types that the reader knows, and classes that no JSON has. */
const READ_CLASSES: readonly string[] = ['Date', 'File', 'Blob'];
/** Names that a printed type has. A made type of such a name would take its place. */
export const READ_NAMES: readonly string[] = [...READ_CLASSES, 'Array', 'Record'];
const UNREAD_CLASSES =
  /^(?:Uint8Array|Buffer|ArrayBuffer|Map|Set|WeakMap|WeakSet|Promise|RegExp|Error|URL|Function|Symbol|ReadableStream|Iterator|Generator|AsyncIterable|Iterable)/;

/** @throws Unprintable */
export function printType(type: ts.Type, name: string, project: TypeProject) {
  const { ts, checker } = project;
  const { TypeFlags: F } = ts;
  const { PrivateKeyword, ProtectedKeyword, PrivateIdentifier } = ts.SyntaxKind;
  const hiding: readonly (ts.SyntaxKind | undefined)[] = [PrivateKeyword, ProtectedKeyword, PrivateIdentifier];
  /** The declarations of the types that contain themselves, by their names. */
  const helpers = new Map<string, string>();
  /** Parts that are not checked, or that clients must leave out. */
  const notes: string[] = [];
  /** The structures around the one that is printed. `helper` is set when one contains itself. */
  const around = new Map<ts.Type, { helper?: string }>();
  let count = 0;
  let helperCount = 0;

  function print(target: ts.Type, at: string): string {
    if (++count > MAX_TYPES)
      throw new Unprintable(`${at}: it has more than ${MAX_TYPES} types; write out the fields that clients may send`);
    // The type of `A extends B ? A : C` is a substitution of `A`.
    if (target.flags & F.Substitution) return print(baseOf(target), at);
    const isStructure =
      (target.flags & (F.Object | F.Union | F.Intersection)) !== 0 && (target.flags & F.Boolean) === 0;
    if (!isStructure) return printPlain(target, at);
    const outer = around.get(target);
    if (outer !== undefined) {
      outer.helper ??= `Inner${++helperCount}_of_${name}`;
      return outer.helper;
    }
    if (around.size > MAX_NESTING)
      throw new Unprintable(`${at}: it grows without end; write out the fields that clients may send`);
    const state: { helper?: string } = {};
    around.set(target, state);
    try {
      const text = printStructure(target, at);
      if (state.helper === undefined) return text;
      helpers.set(state.helper, text);
      return state.helper;
    } finally {
      around.delete(target);
    }
  }

  function printPlain(target: ts.Type, at: string): string {
    const { flags } = target;
    if ((target as { intrinsicName?: string }).intrinsicName === 'error')
      throw new Unprintable(`${at} is not resolved: an import fails, or the file has a type error`);
    if (flags & F.Any) notes.push(`${at} is any, so it is not checked`);
    if (flags & (F.Any | F.Unknown)) return 'unknown';
    const { value } = target as ts.LiteralType;
    if (flags & (F.StringLiteral | F.NumberLiteral)) {
      if (typeof value === 'number' && !Number.isFinite(value))
        throw new Unprintable(`${at} is ${value}, which JSON has not`);
      return JSON.stringify(value);
    }
    const WORDS = [
      [F.BooleanLiteral, checker.typeToString(target)],
      [F.Boolean, 'boolean'],
      [F.TemplateLiteral, checker.typeToString(target, undefined, NO_TRUNCATION)],
      [F.String, 'string'],
      [F.Number, 'number'],
      [F.Null, 'null'],
      [F.Undefined | F.Void, 'undefined'],
      [F.Never, 'never'],
      [F.NonPrimitive, 'object'],
    ] as const;
    const word = WORDS.find(([flag]) => (flags & flag) !== 0)?.[1];
    if (word !== undefined && !(flags & F.StringMapping)) return word;
    const reason = flags & (F.BigIntLike | F.ESSymbolLike) ? 'which JSON has not' : 'which is not understood';
    throw new Unprintable(`${at} is ${checker.typeToString(target).slice(0, 60)}, ${reason}`);
  }

  function printStructure(target: ts.Type, at: string): string {
    if (target.flags & F.Union) return printUnion(partsOf(target), at);
    if (target.flags & F.Intersection) {
      // A brand: `string & { __brand: 'Id' }`. Two templates have two texts: `${string}@x` & `a${string}`.
      const parts = partsOf(target);
      const scalars = parts.filter(({ flags }) => (flags & (F.StringLike | F.NumberLike | F.BooleanLike)) !== 0);
      // The text alone, without the list, would take any value of the scalar.
      if (scalars.length > 0 && parts.some((part) => checker.isArrayType(part) || checker.isTupleType(part)))
        throw new Unprintable(`${at} is a list and a scalar at once, which JSON has not`);
      if (scalars.length > 0) return scalars.map((part) => print(part, at)).join(' & ');
      // The type of `{ kind: 'a' } & { kind: 'b' }` has no fields: it is never.
      const hasFields = (type: ts.Type) => checker.getPropertiesOfType(type).length > 0;
      if (parts.some(hasFields) && !hasFields(target)) return 'never';
      // An index signature holds for the fields of the other parts, too. The brand of a list is no list.
      if (indexesOf(target).length > 0)
        return Array.from(parts, (part) => `(${print(part, at)})`)
          .sort()
          .join(' & ');
    }
    if (checker.isTupleType(target)) return printTuple(target, at);
    const symbol = target.getSymbol();
    const className = symbol?.name ?? '';
    const isGlobal = pathsOf(symbol).some((path) => isLibrary(path) || /@types[\\/]node[\\/]/.test(path));
    if (isGlobal && READ_CLASSES.includes(className)) return className;
    if (isGlobal && UNREAD_CLASSES.test(className))
      throw new Unprintable(`${at} is a ${className}, which JSON has not`);
    const props = checker.getPropertiesOfType(target);
    const names = new Set(props.map((prop) => prop.name));
    // Also a list such as `interface Tags extends Array<string> {}`, without fields of its own.
    const element =
      names.has('map') &&
      names.has('concat') &&
      indexesOf(target).find(({ keyType }) => keyType.flags & F.Number)?.type;
    if (element && props.every((prop) => pathsOf(prop).some(isLibrary))) return `Array<${print(element, `${at}[]`)}>`;
    if (names.has('toISOString') && names.has('getTime')) return 'Date';
    const { Call, Construct } = ts.SignatureKind;
    if ([Call, Construct].some((kind) => checker.getSignaturesOfType(target, kind).length > 0))
      throw new Unprintable(`${at} is a function, which JSON has not`);
    return printObject(target, props, at);
  }

  function indexesOf(target: ts.Type) {
    const indexes = checker.getIndexInfosOfType(target) as readonly (ts.IndexInfo & { valueType?: ts.Type })[];
    return indexes.map(({ keyType, type, valueType = type }) => ({ keyType, type: valueType }));
  }

  function printUnion(parts: readonly ts.Type[], at: string): string {
    const printed = new Set<string>();
    const failures: Unprintable[] = [];
    for (const part of parts) {
      try {
        printed.add(print(part, at));
      } catch (error) {
        if (!(error instanceof Unprintable) || !error.message.endsWith('JSON has not')) throw error;
        failures.push(error);
      }
    }
    // No request has a part that JSON has not.
    if (failures[0] !== undefined && [...printed].every((part) => /^(?:undefined|null)$/.test(part))) throw failures[0];
    notes.push(...failures.map(({ message }) => `${message}: it is left out of its union`));
    if (printed.size > 1) printed.delete('never');
    if (printed.has('true') && printed.delete('false')) {
      printed.delete('true');
      printed.add('boolean');
    }
    const inBrackets = (part: string) => (/^[\w"-]+$/.test(part) ? part : `(${part})`);
    return [...printed].sort().map(inBrackets).join(' | ');
  }

  function printTuple(target: ts.Type, at: string): string {
    const flags = elementFlagsOf(target);
    const items = checker.getTypeArguments(target as ts.TypeReference).map((item, i) => {
      const text = `(${print(item, `${at}[${i}]`)})`;
      const flag = flags[i] ?? ts.ElementFlags.Required;
      if (flag & ts.ElementFlags.Rest) return `...Array<${text}>`;
      return flag & ts.ElementFlags.Variadic ? `...${text}` : `${text}${flag & ts.ElementFlags.Optional ? '?' : ''}`;
    });
    return `[${items.join(', ')}]`;
  }

  function printObject(target: ts.Type, props: readonly ts.Symbol[], at: string): string {
    const lines: string[] = [];
    const indexes = indexesOf(target);
    // The index by string of `Record<string | number, T>` includes numbers, and the reader takes one of the two.
    const byString = indexes.find(({ keyType }) => keyType.flags & F.String)?.type;
    for (const { keyType, type: valueType } of indexes)
      if (!(keyType.flags & F.ESSymbol) && !(keyType.flags & F.Number && valueType === byString))
        lines.push(`[key: ${print(keyType, `${at}[key]`)}]: ${print(valueType, `${at}[key]`)};`);
    for (const prop of sortedBy(props, ({ name }) => name)) {
      if (prop.name.startsWith('__@')) continue;
      const place = `${at}.${prop.name}`;
      const isHidden = (declarationsOf(prop) as ts.PropertyDeclaration[]).some(({ name, modifiers = [] }) =>
        [name, ...modifiers].some((node) => hiding.includes(node?.kind)),
      );
      if (isHidden) throw new Unprintable(`${place} is private, which JSON has not`);
      const key = /^[A-Za-z_$][\w$]*$/.test(prop.name) ? prop.name : JSON.stringify(prop.name);
      const isOptional = (prop.flags & ts.SymbolFlags.Optional) !== 0;
      try {
        lines.push(`${key}${isOptional ? '?' : ''}: ${print(checker.getTypeOfSymbol(prop), place)};`);
      } catch (error) {
        if (!isOptional || !(error instanceof Unprintable) || !error.message.endsWith('JSON has not')) throw error;
        notes.push(`${error.message}: clients must leave it out`);
        lines.push(`${key}?: never;`);
      }
    }
    // `{ [NAME]?: never }` of a symbol is an object. Every value but null is a `{}`.
    const isEmpty = props.length === 0 && indexes.length === 0;
    if (lines.length === 0) return isEmpty ? '{}' : 'Record<never, never>';
    return `{\n${lines.map((line) => `  ${line.replaceAll('\n', '\n  ')}`).join('\n')}\n}`;
  }

  return { text: print(type, name), helpers, notes };
}
