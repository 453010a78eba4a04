// Parses the values from which a controller's operations can come: functions, objects, and names of these. For any
// other expression, `parseValue` returns undefined, and a file whose operations come from such a value is refused.
import type { Cursor } from './cursor.ts';
import { parseFunction, parseMembers, parseTypeArgs, skipValue } from './parse-members.ts';
import type { ValueNode } from './syntax.ts';
import { Kind } from './tokens.ts';

/** For an unsupported form the result is undefined, and the cursor does not move. @param end see `Cursor.parseValue` */
export function parseValue(c: Cursor, end: number): ValueNode | undefined {
  const { doc } = c.token();
  // The value can be malformed, or an expression that only looks like a supported form.
  return c.attempt(() => {
    const value = skipTypeSuffixes(c, parseSupportedValue(c, end));
    if (value === undefined || !isValueEnd(c, end)) return undefined;
    return value.kind === 'function' && doc !== undefined ? { ...value, doc: value.doc ?? doc } : value;
  });
}

/** Steps over `as T` and `satisfies T`. From such a type, TypeScript infers the types of parameters. */
function skipTypeSuffixes(c: Cursor, value: ValueNode | undefined): ValueNode | undefined {
  if (value === undefined || c.token().startsLine || (!c.accept('as') && !c.accept('satisfies'))) return value;
  if (c.accept('const')) return skipTypeSuffixes(c, value);
  const canInfer = c.parseType().kind !== 'word' && value.kind !== 'reference';
  return skipTypeSuffixes(c, canInfer ? { ...value, hasOuterType: true } : value);
}

/**
 * Whether the value before the current token is complete. Otherwise the token continues the expression, such as the `+`
 * of `a + b`. A token on a new line begins the next statement, except for these: punctuation (but `@` begins a
 * decorator), a template (`tag` and its text), `in` and `instanceof`.
 */
function isValueEnd(c: Cursor, end: number): boolean {
  const { kind, text, startsLine } = c.token();
  if (c.index >= end || kind === Kind.end) return true;
  if (kind === Kind.punctuation) return /^[,;]$/.test(text) || (startsLine && text === '@');
  return startsLine && kind !== Kind.template && !/^(?:in|instanceof)$/.test(text);
}

function parseSupportedValue(c: Cursor, end: number): ValueNode | undefined {
  const functionNode = parseFunctionValue(c, end);
  if (functionNode !== undefined) return functionNode;
  if (c.is('(')) return parseParenthesized(c);
  if (c.is('{')) return parseObject(c);
  if (!c.isName()) return undefined;
  const name = c.expectName();
  if (name !== 'defineService') return { kind: 'reference', name };
  // `defineService` keeps the functions of its argument.
  parseTypeArgs(c);
  return parseParenthesized(c);
}

/** Parses `(value)`, and also `(value,)`, the argument of a call. Returns undefined for `(a, b)`. */
function parseParenthesized(c: Cursor): ValueNode | undefined {
  const end = c.closingIndex('(');
  c.index++;
  const value = parseValue(c, end);
  c.accept(',');
  if (c.index !== end) return undefined;
  c.index++;
  return value;
}

function parseObject(c: Cursor): ValueNode {
  const end = c.closingIndex('{');
  c.index++;
  const members = parseMembers(c, end, 'object');
  c.index = end + 1;
  return { kind: 'object', members };
}

/** Returns undefined before any other value, and leaves the cursor where it was. */
function parseFunctionValue(c: Cursor, end: number): ValueNode | undefined {
  // The start of `(a + b)` looks like parameters.
  return c.attempt(() => {
    if (c.is('async') && !c.token(1).startsLine && (c.isName(1) || c.is('(', 1) || c.is('<', 1))) c.index++;
    if (c.accept('function')) {
      c.accept('*');
      if (c.isName()) c.index++;
      const node = parseFunction(c);
      if (c.is('{')) {
        c.skipGroup();
        return node;
      }
    } else if (c.is('(') || c.is('<')) {
      const node = parseFunction(c);
      if (c.accept('=>')) return skipArrowBody(c, end, node);
    } else if (c.isName() && c.is('=>', 1)) {
      const name = c.expectName();
      const params = [{ names: [name], name, isOptional: false, isRest: false, type: undefined }];
      c.index++;
      return skipArrowBody(c, end, { kind: 'function', params, result: undefined, typeParams: [] });
    }
    return undefined;
  });
}

/** Skips the body of an arrow function, and returns `node`. A body without braces ends where a value ends. */
function skipArrowBody(c: Cursor, end: number, node: ValueNode): ValueNode {
  if (c.is('{')) c.skipGroup();
  else skipValue(c, end, ',', true);
  return node;
}
