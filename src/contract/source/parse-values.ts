// Parses the values from which a controller's operations can come: functions, classes, objects, and names of these. Any
// other expression has no node. A file is refused when one of its operations comes from an expression without a node.
import type { Cursor } from './cursor.ts';
import { parseBody, parseClassName } from './parse-declaration.ts';
import { parseFunction, parseMembers, parseTypeArgs, skipValue } from './parse-members.ts';
import { SourceError } from './source-error.ts';
import type { ValueNode } from './syntax.ts';
import { Kind } from './tokens.ts';

/**
 * Parses the value at the cursor. For an unsupported form the result is undefined, and the cursor does not move.
 *
 * @param end index of the closing bracket, or of the file's end, before which the value ends
 */
export function parseValue(c: Cursor, end: number): ValueNode | undefined {
  const from = c.i;
  try {
    const value = parseOperand(c, end);
    while (value !== undefined && skipSuffix(c));
    if (value !== undefined && isValueEnd(c, end)) return value;
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
  }
  c.i = from;
  return undefined;
}

/** Steps over a suffix that has no effect at run time: `x!`, `x as T`, `x satisfies T`. */
function skipSuffix(c: Cursor): boolean {
  if (c.token().startsLine) return false;
  if (c.accept('!')) return true;
  if (!c.accept('as') && !c.accept('satisfies')) return false;
  if (!c.accept('const')) c.parseType();
  return true;
}

function isValueEnd(c: Cursor, end: number): boolean {
  const { kind, text, startsLine } = c.token();
  if (c.i >= end || kind === Kind.end) return true;
  if (kind === Kind.punctuation) return /^[,;]$/.test(text) || (startsLine && text === '@');
  return startsLine && kind !== Kind.template && !/^(?:in|instanceof)$/.test(text);
}

function parseOperand(c: Cursor, end: number): ValueNode | undefined {
  const { doc } = c.token();
  const value = parseBareOperand(c, end);
  return value?.kind === 'function' && doc !== undefined ? { ...value, doc: value.doc ?? doc } : value;
}

function parseBareOperand(c: Cursor, end: number): ValueNode | undefined {
  const node = parseFunctionValue(c, end);
  if (node !== undefined) return node;
  if (c.is('(')) return parseParenthesized(c);
  if (c.is('{')) return parseObject(c);
  if (c.is('class')) return parseClass(c);
  if (c.accept('new')) return parseNew(c);
  if (!c.isName()) return undefined;
  const name = c.parseDottedName(c.expectName());
  if (name === 'defineService') parseTypeArgs(c);
  if (c.is('(')) return name === 'Object.freeze' || name === 'defineService' ? parseParenthesized(c) : undefined;
  return { kind: 'reference', name };
}

/** Parses `(value)`. Returns undefined for `(a, b)`. */
function parseParenthesized(c: Cursor): ValueNode | undefined {
  const end = c.closingIndex('(');
  c.i++;
  const value = parseValue(c, end);
  c.accept(',');
  if (c.i !== end) return undefined;
  c.i++;
  return value;
}

function parseObject(c: Cursor): ValueNode {
  const end = c.closingIndex('{');
  c.i++;
  const members = parseMembers(c, end, 'object');
  c.i = end + 1;
  return { kind: 'object', members };
}

function parseClass(c: Cursor): ValueNode {
  const { at, doc } = c.token();
  c.i++;
  return { kind: 'class', declaration: parseBody(c, 'class', parseClassName(c) ?? '', { doc, at }) };
}

function parseNew(c: Cursor): ValueNode | undefined {
  const callee: ValueNode | undefined = c.is('(')
    ? parseParenthesized(c)
    : c.is('class')
      ? parseClass(c)
      : c.isName()
        ? { kind: 'reference', name: c.parseDottedName(c.expectName()) }
        : undefined;
  if (callee === undefined) return undefined;
  const args = parseTypeArgs(c);
  if (c.is('(')) c.skip();
  return { kind: 'new', callee, args };
}

/** Parses a function. For any other value the result is undefined, and the cursor does not move. */
function parseFunctionValue(c: Cursor, end: number): ValueNode | undefined {
  const from = c.i;
  if (c.is('async') && !c.token(1).startsLine && (c.isName(1) || c.is('(', 1) || c.is('<', 1))) c.i++;
  try {
    if (c.accept('function')) {
      c.accept('*');
      if (c.isName()) c.i++;
      const node = parseFunction(c);
      if (c.is('{')) {
        c.skip();
        return node;
      }
    } else if (c.is('(') || c.is('<')) {
      const node = parseFunction(c);
      if (c.accept('=>')) return skipArrowBody(c, end, node);
    } else if (c.isName() && c.is('=>', 1)) {
      const params = [{ name: c.expectName(), isOptional: false, isRest: false, type: undefined }];
      c.i++;
      return skipArrowBody(c, end, { kind: 'function', params, result: undefined, typeParams: [] });
    }
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
  }
  c.i = from;
  return undefined;
}

/** Steps over the body of an arrow function. A body without braces ends at a comma or with the statement. */
function skipArrowBody(c: Cursor, end: number, node: ValueNode): ValueNode {
  if (c.is('{')) c.skip();
  else skipValue(c, end, ',', true);
  return node;
}
