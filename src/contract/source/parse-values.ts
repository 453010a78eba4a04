// Values that lead to operations: functions, classes, objects, and names of such. Every other expression stays unread,
// and an operation behind it refuses the file.
import type { Cursor } from './cursor.ts';
import { classNameAt, parseBody } from './parse-declaration.ts';
import { parseFunction, parseMembers, parseTypeArgs, skipValue } from './parse-members.ts';
import { SourceError } from './source-error.ts';
import type { ValueNode } from './syntax.ts';
import { Kind } from './tokens.ts';

/**
 * The value that begins here; undefined when its form is not followed.
 *
 * @param end index of the bracket that closes what the value is part of
 */
export function valueAt(c: Cursor, end: number): ValueNode | undefined {
  const from = c.i;
  try {
    const value = operand(c, end);
    while (value !== undefined && suffix(c));
    if (value !== undefined && endsHere(c, end)) return value;
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
  }
  c.i = from;
  return undefined;
}

/** `x!`, `x as T`, `x satisfies T` are `x` at run time. */
function suffix(c: Cursor): boolean {
  if (c.token().fresh) return false;
  if (c.take('!')) return true;
  if (!c.take('as') && !c.take('satisfies')) return false;
  if (!c.take('const')) c.type();
  return true;
}

function endsHere(c: Cursor, end: number): boolean {
  const { kind, text, fresh } = c.token();
  if (c.i >= end || kind === Kind.end) return true;
  if (kind === Kind.punctuation) return /^[,;]$/.test(text) || (fresh && text === '@');
  return fresh && kind !== Kind.template && !/^(?:in|instanceof)$/.test(text);
}

function operand(c: Cursor, end: number): ValueNode | undefined {
  const { doc } = c.token();
  const value = bare(c, end);
  return value?.kind === 'function' && doc !== undefined ? { ...value, doc: value.doc ?? doc } : value;
}

function bare(c: Cursor, end: number): ValueNode | undefined {
  const made = functionAt(c, end);
  if (made !== undefined) return made;
  if (c.is('(')) return inBrackets(c);
  if (c.is('{')) return objectAt(c);
  if (c.is('class')) return classAt(c);
  if (c.take('new')) return newAt(c);
  if (!c.isName()) return undefined;
  const name = c.dotted(c.name());
  if (c.is('(')) return name === 'Object.freeze' ? inBrackets(c) : undefined;
  return { kind: 'reference', name };
}

/** `(value)`; a list of several is none. */
function inBrackets(c: Cursor): ValueNode | undefined {
  const end = c.end('(');
  c.i++;
  const value = valueAt(c, end);
  c.take(',');
  if (c.i !== end) return undefined;
  c.i++;
  return value;
}

function objectAt(c: Cursor): ValueNode {
  const end = c.end('{');
  c.i++;
  const members = parseMembers(c, end, 'value');
  c.i = end + 1;
  return { kind: 'object', members };
}

function classAt(c: Cursor): ValueNode {
  const { at, doc } = c.token();
  c.i++;
  return { kind: 'class', declaration: parseBody(c, 'class', classNameAt(c) ?? '', { doc, at }) };
}

function newAt(c: Cursor): ValueNode | undefined {
  const maker: ValueNode | undefined = c.is('(')
    ? inBrackets(c)
    : c.is('class')
      ? classAt(c)
      : c.isName()
        ? { kind: 'reference', name: c.dotted(c.name()) }
        : undefined;
  if (maker === undefined) return undefined;
  const args = parseTypeArgs(c);
  if (c.is('(')) c.skip();
  return { kind: 'new', maker, args };
}

/** A function, with its body stepped over; undefined for another value, and nothing is taken. */
function functionAt(c: Cursor, end: number): ValueNode | undefined {
  const from = c.i;
  if (c.is('async') && !c.token(1).fresh && (c.isName(1) || c.is('(', 1) || c.is('<', 1))) c.i++;
  try {
    if (c.take('function')) {
      c.take('*');
      if (c.isName()) c.i++;
      const made = parseFunction(c);
      if (c.is('{')) {
        c.skip();
        return made;
      }
    } else if (c.is('(') || c.is('<')) {
      const made = parseFunction(c);
      if (c.take('=>')) return withBody(c, end, made);
    } else if (c.isName() && c.is('=>', 1)) {
      const params = [{ name: c.name(), optional: false, rest: false, type: undefined }];
      c.i++;
      return withBody(c, end, { kind: 'function', params, result: undefined, typeParams: [] });
    }
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
  }
  c.i = from;
  return undefined;
}

/** An arrow function takes all that follows, up to a comma or the end of the statement. */
function withBody(c: Cursor, end: number, made: ValueNode): ValueNode {
  if (c.is('{')) c.skip();
  else skipValue(c, end, ',', true);
  return made;
}
