// Types by recursive descent. What is outside of the subset is read over and becomes a node `other`.
import type { Cursor } from './cursor.ts';
import { parseMembers, parseTypeArgs, parseTypeParams } from './parse-members.ts';
import type { TupleItem, TypeNode } from './syntax.ts';
import { Kind } from './tokens.ts';

const WORDS = new Set('string number boolean undefined unknown any never object void bigint symbol'.split(' '));

export function parseType(c: Cursor): TypeNode {
  const from = c.i;
  return c.sound(wholeType(c), from);
}

function wholeType(c: Cursor): TypeNode {
  const { at } = c.token();
  if (isFunctionType(c)) return functionType(c, at);
  const first = union(c);
  if (!c.is('extends') || c.token().fresh) return predicateOr(c, first, at);
  c.i++;
  union(c);
  c.expect('?');
  parseType(c);
  c.expect(':');
  parseType(c);
  return { kind: 'other', what: 'a conditional type', at };
}

/** `x is T` is a boolean. */
function predicateOr(c: Cursor, first: TypeNode, at: number): TypeNode {
  if (!c.is('is') || c.token().fresh || !/^(?:name|word|other)$/.test(first.kind)) return first;
  c.i++;
  parseType(c);
  return { kind: 'word', name: 'boolean', at };
}

function isFunctionType(c: Cursor): boolean {
  if (c.is('new') || (c.is('abstract') && c.is('new', 1)) || c.is('<')) return true;
  return c.is('(') && c.is('=>', (c.partner[c.i] as number) - c.i + 1);
}

function functionType(c: Cursor, at: number): TypeNode {
  while (c.isName()) c.i++;
  parseTypeParams(c);
  c.i = c.end('(') + 1;
  c.expect('=>');
  parseType(c);
  return { kind: 'other', what: 'a function', at };
}

const union = (c: Cursor): TypeNode => joined(c, '|', 'union', (inner) => joined(inner, '&', 'intersection', operator));

function joined(c: Cursor, sign: '|' | '&', kind: 'union' | 'intersection', part: (c: Cursor) => TypeNode): TypeNode {
  const { at } = c.token();
  c.take(sign);
  const of = [isFunctionType(c) ? functionType(c, at) : part(c)];
  while (c.take(sign)) of.push(isFunctionType(c) ? functionType(c, at) : part(c));
  return of.length === 1 ? (of[0] as TypeNode) : { kind, of, at };
}

function operator(c: Cursor): TypeNode {
  const { at, text } = c.token();
  if (
    (text === 'keyof' || text === 'readonly' || text === 'unique' || text === 'infer') &&
    c.isName() &&
    startsType(c, 1)
  ) {
    c.i++;
    const of = operator(c);
    if (text === 'keyof' || text === 'readonly') return { kind: text, of, at };
    if (text === 'infer' && c.take('extends')) union(c);
    return { kind: 'other', what: text === 'unique' ? 'a unique symbol' : 'an inferred type', at };
  }
  if (text === 'asserts' && c.isName() && c.isName(1) && !c.token(1).fresh) {
    c.i += 2;
    if (c.take('is')) parseType(c);
    return { kind: 'word', name: 'void', at };
  }
  let left = primary(c);
  while (c.is('[') && !c.token().fresh) {
    c.i++;
    if (c.take(']')) left = { kind: 'array', of: left, at };
    else {
      const key = parseType(c);
      c.expect(']');
      left = { kind: 'at', object: left, key, at };
    }
  }
  return left;
}

function startsType(c: Cursor, ahead: number): boolean {
  const { kind, text } = c.token(ahead);
  if (kind === Kind.punctuation) return /^[({[<-]$/.test(text);
  return kind !== Kind.end && text !== 'extends' && text !== 'is';
}

function primary(c: Cursor): TypeNode {
  const { kind, text, at, value } = c.token();
  if (kind === Kind.template) return template(c, at);
  if (text === '{' && kind === Kind.punctuation) return object(c, at);
  if (text === '[' && kind === Kind.punctuation) return tuple(c, at);
  c.i++;
  if (kind === Kind.string) return { kind: 'literal', value, at };
  if (kind === Kind.number) return number(text, 1, at);
  if (text === '-' && c.token().kind === Kind.number) return number(c.next().text, -1, at);
  if (text === '(') {
    const inner = parseType(c);
    c.expect(')');
    return inner;
  }
  if (kind !== Kind.name) {
    c.i--;
    return c.fail('a type');
  }
  return named(c, value, at);
}

function named(c: Cursor, word: string, at: number): TypeNode {
  if (word === 'true' || word === 'false') return { kind: 'literal', value: word === 'true', at };
  if (word === 'null') return { kind: 'literal', value: null, at };
  if (WORDS.has(word) && !c.is('.')) return { kind: 'word', name: word, at };
  if (word === 'typeof') return typeOf(c, at);
  if (word === 'import' && c.is('(')) return importType(c, at);
  if (word === 'this') return { kind: 'other', what: '`this`', at };
  return { kind: 'name', name: c.dotted(word), args: parseTypeArgs(c), at };
}

function number(text: string, sign: number, at: number): TypeNode {
  if (text.endsWith('n')) return { kind: 'other', what: 'a bigint', at };
  return { kind: 'literal', value: sign * Number(text.replaceAll('_', '')), at };
}

function typeOf(c: Cursor, at: number): TypeNode {
  if (c.take('import')) {
    importType(c, at);
    return { kind: 'other', what: '`typeof import()`', at };
  }
  const of = c.dotted(c.name());
  if (c.is('<') && !c.token().fresh) parseTypeArgs(c);
  return { kind: 'typeof', name: of, at };
}

function importType(c: Cursor, at: number): TypeNode {
  const end = c.end('(');
  const from = c.token(1).value;
  c.i = end + 1;
  const path = c.is('.') ? c.dotted('').slice(1) : '*';
  return { kind: 'name', name: path, args: parseTypeArgs(c), from, at };
}

function template(c: Cursor, at: number): TypeNode {
  const texts = [c.token().value];
  const types: TypeNode[] = [];
  while (c.next().text.endsWith('{')) {
    types.push(parseType(c));
    texts.push(c.token().value);
  }
  return { kind: 'template', texts, types, at };
}

function tuple(c: Cursor, at: number): TypeNode {
  const items: TupleItem[] = [];
  c.expect('[');
  while (!c.take(']')) {
    const rest = c.take('...');
    const isLabelled = c.isName() && (c.is(':', 1) || (c.is('?', 1) && c.is(':', 2)));
    let optional = false;
    if (isLabelled) {
      c.i++;
      optional = c.take('?');
      c.expect(':');
    }
    const type = parseType(c);
    items.push({ type, rest, optional: c.take('?') || optional });
    if (!c.is(']')) c.expect(',');
  }
  return { kind: 'tuple', items, at };
}

function object(c: Cursor, at: number): TypeNode {
  const end = c.end('{');
  let ahead = 1;
  if (c.is('+', ahead) || c.is('-', ahead)) ahead++;
  if (c.is('readonly', ahead)) ahead++;
  if (c.is('[', ahead) && c.is('in', ahead + 2)) return mapped(c, ahead + 1, end, at);
  c.i++;
  const members = parseMembers(c, end, 'type');
  c.i = end + 1;
  return { kind: 'object', members, at };
}

function mapped(c: Cursor, ahead: number, end: number, at: number): TypeNode {
  c.i += ahead;
  const param = c.name();
  c.expect('in');
  const keys = parseType(c);
  const renamed = c.take('as');
  if (renamed) parseType(c);
  c.expect(']');
  const sign = c.is('+') || c.is('-') ? c.next().text : '';
  const optional = c.take('?') ? `${sign}?` : '';
  const of: TypeNode = c.take(':') ? parseType(c) : { kind: 'word', name: 'any', at };
  while (c.take(';') || c.take(','));
  if (c.i !== end) c.fail('}');
  c.i++;
  return renamed
    ? { kind: 'other', what: 'a mapped type with `as`', at }
    : { kind: 'mapped', param, keys, of, optional, at };
}
