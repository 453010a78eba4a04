// Parses types by recursive descent. An unsupported type, such as a function, becomes an `unsupported` node: the parser
// reads the type only to find its end.
import type { Cursor } from './cursor.ts';
import { parseMembers, parseTypeArgs, parseTypeParams } from './parse-members.ts';
import { WRITE_OUT } from './source-error.ts';
import type { TupleItem, TypeNode } from './syntax.ts';
import { Kind } from './tokens.ts';

const BUILTIN_WORDS = new Set('string number boolean undefined unknown any never object void bigint symbol'.split(' '));

export function parseType(c: Cursor): TypeNode {
  const from = c.index;
  return c.refuseStrayTags(parseConditionalType(c), from);
}

function parseConditionalType(c: Cursor): TypeNode {
  const { at } = c.token();
  if (isFunctionType(c)) return parseFunctionType(c, at);
  const first = parseUnion(c);
  if (!c.is('extends') || c.token().startsLine) return parsePredicate(c, first, at);
  c.index++;
  parseUnion(c);
  c.expect('?');
  parseType(c);
  c.expect(':');
  parseType(c);
  return { kind: 'unsupported', form: 'a conditional type', cure: WRITE_OUT, at };
}

/** Parses `is T` after a name, and returns `boolean`: `x is T` is the result of a type guard. Else returns `first`. */
function parsePredicate(c: Cursor, first: TypeNode, at: number): TypeNode {
  if (!c.is('is') || c.token().startsLine || !/^(?:name|word|unsupported)$/.test(first.kind)) return first;
  c.index++;
  parseType(c);
  return { kind: 'word', name: 'boolean', at };
}

/** Whether a function type begins at the cursor: `(a: A) => B`, `<T>(a: T) => B` or `new () => A`. */
function isFunctionType(c: Cursor): boolean {
  if (c.is('new') || (c.is('abstract') && c.is('new', 1)) || c.is('<')) return true;
  return c.is('(') && c.is('=>', (c.partner[c.index] as number) - c.index + 1);
}

function parseFunctionType(c: Cursor, at: number): TypeNode {
  while (c.isName()) c.index++;
  parseTypeParams(c);
  c.index = c.closingIndex('(') + 1;
  c.expect('=>');
  parseType(c);
  return { kind: 'unsupported', form: 'a function', cure: "leave it out, as by Omit<Options, 'onSave'>", at };
}

/** Parses a union of intersections, because `&` binds more tightly than `|`. */
const parseUnion = (c: Cursor): TypeNode =>
  parseParts(c, 'union', (inner) => parseParts(inner, 'intersection', parseOperator));

function parseParts(c: Cursor, kind: 'union' | 'intersection', parsePart: (c: Cursor) => TypeNode): TypeNode {
  const sign = kind === 'union' ? '|' : '&';
  const { at } = c.token();
  c.accept(sign);
  const parts = [isFunctionType(c) ? parseFunctionType(c, at) : parsePart(c)];
  while (c.accept(sign)) parts.push(parsePart(c));
  return parts.length === 1 ? (parts[0] as TypeNode) : { kind, parts, at };
}

function parseOperator(c: Cursor): TypeNode {
  const { at, text } = c.token();
  if (/^(?:keyof|readonly|unique|infer)$/.test(text) && c.isName() && startsType(c)) {
    c.index++;
    const operand = parseOperator(c);
    if (text === 'keyof' || text === 'readonly') return { kind: text, operand, at };
    if (text === 'infer' && c.accept('extends')) parseUnion(c);
    return { kind: 'unsupported', form: text === 'unique' ? 'a unique symbol' : 'an inferred type', at };
  }
  // `asserts x is T` is the result of a function that returns nothing.
  if (text === 'asserts' && c.isName() && c.isName(1) && !c.token(1).startsLine) {
    c.index += 2;
    if (c.accept('is')) parseType(c);
    return { kind: 'word', name: 'void', at };
  }
  let type = parsePrimary(c);
  while (c.is('[') && !c.token().startsLine) {
    c.index++;
    if (c.accept(']')) type = { kind: 'array', element: type, at };
    else {
      const key = parseType(c);
      c.expect(']');
      type = { kind: 'indexed', object: type, key, at };
    }
  }
  return type;
}

/** Whether a type can begin at the next token. If so, the current word is an operator such as `keyof`. */
function startsType(c: Cursor): boolean {
  const { kind, text } = c.token(1);
  if (kind === Kind.punctuation) return /^[({[<-]$/.test(text);
  return kind !== Kind.end && text !== 'extends' && text !== 'is';
}

function parsePrimary(c: Cursor): TypeNode {
  const { kind, text, at, value } = c.token();
  if (kind === Kind.template) return parseTemplate(c, at);
  if (text === '{' && kind === Kind.punctuation) return parseObjectType(c, at);
  if (text === '[' && kind === Kind.punctuation) return parseTuple(c, at);
  c.index++;
  if (kind === Kind.string) return { kind: 'literal', value, at };
  if (kind === Kind.number) return numberLiteral(text, 1, at);
  if (text === '-' && c.token().kind === Kind.number) return numberLiteral(c.next().text, -1, at);
  if (text === '(') {
    const inner = parseType(c);
    c.expect(')');
    return inner;
  }
  if (kind !== Kind.name) {
    c.index--;
    return c.fail('a type');
  }
  return parseNamedType(c, value, at);
}

function parseNamedType(c: Cursor, word: string, at: number): TypeNode {
  if (word === 'true' || word === 'false') return { kind: 'literal', value: word === 'true', at };
  if (word === 'null') return { kind: 'literal', value: null, at };
  if (BUILTIN_WORDS.has(word) && !c.is('.')) return { kind: 'word', name: word, at };
  if (word === 'typeof') return parseTypeOf(c, at);
  if (word === 'import' && c.is('(')) return parseImportType(c, at);
  if (word === 'this') return { kind: 'unsupported', form: '`this`', at };
  return { kind: 'name', name: c.parseDottedName(word), args: parseTypeArgs(c), at };
}

function numberLiteral(text: string, sign: number, at: number): TypeNode {
  if (text.endsWith('n')) return { kind: 'unsupported', form: 'a bigint', at };
  return { kind: 'literal', value: sign * Number(text.replaceAll('_', '')), at };
}

function parseTypeOf(c: Cursor, at: number): TypeNode {
  if (c.accept('import')) return parseImportType(c, at);
  const name = c.parseDottedName(c.expectName());
  if (c.is('<') && !c.token().startsLine) parseTypeArgs(c);
  return { kind: 'typeof', name, at };
}

/** Parses `('./file.ts').Name<Args>` after the word `import`. */
function parseImportType(c: Cursor, at: number): TypeNode {
  c.index = c.closingIndex('(') + 1;
  c.parseDottedName('');
  parseTypeArgs(c);
  return { kind: 'unsupported', form: 'a type in import(…)', cure: 'import it by name, at the top of the file', at };
}

function parseTemplate(c: Cursor, at: number): TypeNode {
  const texts = [c.token().value];
  const types: TypeNode[] = [];
  while (c.next().text.endsWith('{')) {
    types.push(parseType(c));
    texts.push(c.token().value);
  }
  return { kind: 'template', texts, types, at };
}

function parseTuple(c: Cursor, at: number): TypeNode {
  const items: TupleItem[] = [];
  c.expect('[');
  while (!c.accept(']')) {
    const isRest = c.accept('...');
    const isLabelled = c.isName() && (c.is(':', 1) || (c.is('?', 1) && c.is(':', 2)));
    let isOptional = false;
    if (isLabelled) {
      c.index++;
      isOptional = c.accept('?');
      c.expect(':');
    }
    const type = parseType(c);
    items.push({ type, isRest, isOptional: c.accept('?') || isOptional });
    if (!c.is(']')) c.expect(',');
  }
  return { kind: 'tuple', items, at };
}

/** Parses `{ … }`: a list of members, or a mapped type such as `{ readonly [K in Keys]?: T }`. */
function parseObjectType(c: Cursor, at: number): TypeNode {
  const end = c.closingIndex('{');
  let ahead = 1;
  if (c.is('+', ahead) || c.is('-', ahead)) ahead++;
  if (c.is('readonly', ahead)) ahead++;
  if (c.is('[', ahead) && c.is('in', ahead + 2)) return parseMappedType(c, ahead + 1, end, at);
  c.index++;
  const members = parseMembers(c, end, 'type');
  c.index = end + 1;
  return { kind: 'object', members, at };
}

/** @param ahead number of tokens before the name of the parameter. @param end index of the closing brace */
function parseMappedType(c: Cursor, ahead: number, end: number, at: number): TypeNode {
  c.index += ahead;
  const param = c.expectName();
  c.expect('in');
  const keys = parseType(c);
  const isRenamed = c.accept('as');
  if (isRenamed) parseType(c);
  c.expect(']');
  const sign = c.is('+') || c.is('-') ? c.next().text : '';
  const optionalSign = c.accept('?') ? `${sign}?` : '';
  const value: TypeNode = c.accept(':') ? parseType(c) : { kind: 'word', name: 'any', at };
  while (c.accept(';') || c.accept(','));
  if (c.index !== end) c.fail('}');
  c.index++;
  return isRenamed
    ? { kind: 'unsupported', form: 'a mapped type with `as`', cure: WRITE_OUT, at }
    : { kind: 'mapped', param, keys, value, optionalSign, at };
}
