// The members of types, of classes and of objects that are values, with the parameters of their functions. Bodies and
// values are stepped over.
import type { Cursor } from './cursor.ts';
import { SourceError } from './source-error.ts';
import type { FunctionNode, Member, Param, TypeNode, TypeParam } from './syntax.ts';
import { Kind } from './tokens.ts';

export type MemberHolder = 'type' | 'class' | 'value';

const MODIFIERS = new Set(
  'public private protected static async override abstract readonly declare accessor get set export default'.split(' '),
);
/** These need their member on the same line; alone on a line they are a field. */
const LINE_BOUND = /^(?:async|declare|accessor|abstract)$/;
const CONTINUES = /^(?:[.,;:?)\]}([*/%+&|^<>=-]|=>|in|instanceof|as|satisfies)$/;

export function parseMembers(c: Cursor, end: number, holder: MemberHolder): Member[] {
  const found: Member[] = [];
  while (c.i < end) {
    if (c.take(';') || c.take(',')) continue;
    found.push(member(c, end, holder));
  }
  return found;
}

function member(c: Cursor, end: number, holder: MemberHolder): Member {
  const { at, doc: before } = c.token();
  const from = c.i;
  const modifiers: string[] = [];
  const decorator = skipDecorators(c);
  while ((c.isName() && MODIFIERS.has(c.token().text) && startsMember(c, 1)) || c.is('*')) {
    modifiers.push(c.next().text);
  }
  const docAt = before === undefined ? c.i : from;
  const doc = c.i === from ? before : c.docBehind(before);
  const base = { modifiers, doc, at, optional: false, params: [], type: undefined, body: false };
  if (holder === 'class' && c.is('static', -1) && c.is('{')) {
    c.skip();
    return { ...base, kind: 'other', name: '' };
  }
  if (holder === 'value' && c.take('...')) {
    skipValue(c, end, ',');
    return { ...base, kind: 'spread', name: '' };
  }
  if (c.is('(') || c.is('<') || (holder === 'type' && c.is('new') && (c.is('(', 1) || c.is('<', 1)))) {
    c.take('new');
    parseSignature(c);
    return { ...base, kind: 'other', name: '' };
  }
  if (c.is('[') && c.isName(1) && c.is(':', 2)) return indexSignature(c, base, from, docAt);
  const { name, computed } = memberName(c);
  const named = { ...base, name, computed };
  const optional = c.is('?');
  if (!c.take('?')) c.take('!');
  if (c.is('(') || c.is('<')) {
    const { params, result, typeParams } = parseSignature(c);
    const body = c.is('{');
    if (body) c.skip();
    const kind = modifiers.includes('get') || modifiers.includes('set') ? 'accessor' : 'method';
    return { ...named, kind, optional, params, typeParams, type: result, body };
  }
  if (holder === 'value') return { ...named, optional, kind: 'property', value: propertyValue(c, end, named) };
  const type = c.take(':') ? c.type() : undefined;
  const typed = type === undefined ? {} : { doc: c.takeDoc(docAt), type: c.sound(type, from, c.behind) };
  const decorated = decorator === undefined ? {} : { type: decoratedType(decorator, at) };
  if (holder === 'class' && c.take('=')) skipValue(c, end, ';', true);
  else if (holder === 'class' && !c.is(';') && c.i < end && !c.token().fresh) c.fail(';');
  return { ...named, kind: 'property', optional, ...typed, ...decorated };
}

type Base = Pick<Member, 'modifiers' | 'doc' | 'at' | 'optional' | 'params' | 'type' | 'body'>;

function indexSignature(c: Cursor, base: Base, from: number, docAt: number): Member {
  c.i += 3;
  const key = c.type();
  c.expect(']');
  c.expect(':');
  const params = [{ name: '', optional: false, rest: false, type: key }];
  const type = c.type();
  return { ...base, kind: 'index', name: '', params, doc: c.takeDoc(docAt), type: c.sound(type, from, c.behind) };
}

function decoratedType(name: string, at: number): TypeNode {
  const cure = 'write the constraint as a tag, or give a schema in static operations';
  return { kind: 'mistake', message: `decorators such as @${name} are not read: ${cure}`, at };
}

function propertyValue(c: Cursor, end: number, { name, computed }: Pick<Member, 'name' | 'computed'>): Member['value'] {
  let value: Member['value'];
  if (c.take(':')) value = c.value(end);
  else if ((c.i >= end || c.is(',')) && computed === undefined) value = { kind: 'reference', name };
  skipValue(c, end, ',');
  return value;
}

export function parseFunction(c: Cursor): FunctionNode {
  return { kind: 'function', ...parseSignature(c) };
}

/** @returns the name of the first one */
export function skipDecorators(c: Cursor): string | undefined {
  let first: string | undefined;
  while (c.take('@')) {
    const name = c.is('(') ? '(…)' : c.dotted(c.name());
    first ??= name;
    parseTypeArgs(c);
    if (c.is('(')) c.skip();
  }
  return first;
}

/** Whether a modifier is one, and not itself the name. */
function startsMember(c: Cursor, ahead: number): boolean {
  const { kind, text, fresh } = c.token(ahead);
  if (kind === Kind.name) return !fresh || !LINE_BOUND.test(c.token(ahead - 1).text);
  if (kind === Kind.string || kind === Kind.number || text === '[' || text === '*') return true;
  return text === '{' && c.is('static', ahead - 1);
}

function memberName(c: Cursor): Pick<Member, 'name' | 'computed'> {
  const { kind, text, value } = c.token();
  if (kind === Kind.name || kind === Kind.string || kind === Kind.number) {
    c.i++;
    return { name: kind === Kind.number ? String(Number(text.replaceAll('_', ''))) : value };
  }
  if (!c.is('[')) return c.fail('a member');
  const end = c.end('[');
  c.i++;
  const inner = c.token();
  const isText = inner.kind === Kind.string || inner.text === '`';
  const computed = c.isName() ? c.dotted(c.name()) : '';
  const isPlain = c.i === end;
  const isTextAlone = isText && c.i + 1 === end;
  c.i = end + 1;
  return isTextAlone ? { name: inner.value } : { name: '', computed: isPlain ? computed : '' };
}

export function parseSignature(c: Cursor): Omit<FunctionNode, 'kind'> {
  const typeParams = parseTypeParams(c);
  const params = parseParams(c);
  return { typeParams, params, result: c.take(':') ? c.type() : undefined };
}

function parseParams(c: Cursor): Param[] {
  const end = c.end('(');
  const found: Param[] = [];
  c.i++;
  while (c.i < end) {
    const { doc } = c.token();
    const from = c.i;
    skipDecorators(c);
    let declares = false;
    while (MODIFIERS.has(c.token().text) && c.isName() && c.isName(1)) {
      declares = true;
      c.i++;
    }
    const rest = c.take('...');
    let name = '';
    if (c.is('{') || c.is('[')) c.skip();
    else name = c.name();
    const optional = c.take('?');
    const type = c.take(':') ? c.sound(c.type(), from, c.i + 1) : undefined;
    const typeEnd = c.token().at;
    const preset = c.take('=');
    if (preset) skipValue(c, end, ',');
    found.push({ name, optional: optional || preset, rest, type, end: typeEnd, declares, doc });
    if (c.i < end) c.expect(',');
  }
  c.i = end + 1;
  return found;
}

export function parseTypeParams(c: Cursor): TypeParam[] {
  const found: TypeParam[] = [];
  if (!c.take('<')) return found;
  while (!c.take('>')) {
    while ((c.is('const') || c.is('in') || c.is('out')) && c.isName(1)) c.i++;
    const name = c.name();
    const constraint = c.take('extends') ? c.type() : undefined;
    found.push({ name, constraint, fallback: c.take('=') ? c.type() : undefined });
    if (!c.is('>')) c.expect(',');
  }
  return found;
}

export function parseTypeArgs(c: Cursor): TypeNode[] {
  const args: TypeNode[] = [];
  if (!c.is('<') || c.token().fresh) return args;
  c.i++;
  while (!c.take('>')) {
    args.push(c.type());
    if (!c.is('>')) c.expect(',');
  }
  return args;
}

/** To the `stop` that ends a value, or, with `lines`, to where a line break does. */
export function skipValue(c: Cursor, end: number, stop: string, lines = false): void {
  for (const from = c.i; c.i < end; c.i++) {
    if (c.is(stop) || c.is(';')) return;
    if (
      lines &&
      c.i > from &&
      c.token().fresh &&
      endsOperand(c, 0) &&
      !CONTINUES.test(c.token().text) &&
      !(c.is('!') && c.is('=', 1)) &&
      c.token().kind !== Kind.template
    ) {
      return;
    }
    if (c.is('<') && c.isName(-1)) skipTypeArgs(c);
    const partner = c.partner[c.i] as number;
    if (partner >= 0) c.i = partner;
  }
}

/** Whether a value can end before the token that is `ahead` of this one: `x`, `)`, `x!`, `x++`. */
function endsOperand(c: Cursor, ahead: number): boolean {
  const { kind, text } = c.token(ahead - 1);
  if (kind !== Kind.punctuation) return true;
  if (text === '!') return endsOperand(c, ahead - 1);
  if ((text === '+' || text === '-') && c.is(text, ahead - 2)) return endsOperand(c, ahead - 2);
  return /^[)\]}]$/.test(text);
}

/** `new Map<string, number>()`: its comma ends nothing. A less-than stays where it is. */
function skipTypeArgs(c: Cursor): void {
  const from = c.i;
  try {
    parseTypeArgs(c);
    if (c.is('(') || c.is('`') || c.is('`${')) {
      c.i--;
      return;
    }
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
  }
  c.i = from;
}
