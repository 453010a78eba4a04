// Parses the members of object types, classes and object literals, and the parameters of functions. The parsers step
// over function bodies, and over the values of fields and parameters.
import type { Cursor } from './cursor.ts';
import { joinDocs } from './doc-comment.ts';
import type { FunctionNode, Member, Param, TypeNode, TypeParam } from './syntax.ts';
import { Kind, type Token } from './tokens.ts';

export type MemberHolder = 'type' | 'class' | 'object';

const MODIFIERS = new Set(
  'public private protected static async override abstract readonly declare accessor get set export default'.split(' '),
);
/** Modifiers that can be on another line than their member. Any other such word, alone on a line, names a field. */
const MODIFIERS_ABOVE_MEMBER = /^(?:static|get|set|export|default)$/;
/** Matches tokens that continue the value before them, even at the start of a line. */
const CONTINUES_VALUE = /^(?:[.,;:?)\]}([*/%+&|^<>=-]|=>|in|instanceof|as|satisfies)$/;

/** @param end index of the closing brace. @param holder the structure that has the members */
export function parseMembers(c: Cursor, end: number, holder: MemberHolder): Member[] {
  const members: Member[] = [];
  while (c.index < end) {
    if (c.accept(';') || c.accept(',')) continue;
    members.push(parseMember(c, end, holder));
  }
  return members;
}

function parseMember(c: Cursor, end: number, holder: MemberHolder): Member {
  const { at, doc: ownDoc } = c.token();
  const from = c.index;
  const modifiers: string[] = [];
  const decoratorName = skipDecorators(c);
  while ((c.isName() && MODIFIERS.has(c.token().text) && beginsMember(c)) || c.is('*')) modifiers.push(c.next().text);
  // A comment can come before the decorators and the modifiers, or between these and the name.
  const docIndex = ownDoc === undefined ? c.index : from;
  const doc = joinDocs(ownDoc, c.token().doc);
  const shared = { modifiers, doc, at, isOptional: false, params: [], type: undefined, hasBody: false };
  // A static block: `static { … }`.
  if (holder === 'class' && c.is('static', -1) && c.is('{')) {
    c.skipGroup();
    return { ...shared, kind: 'other', name: '' };
  }
  if (holder === 'object' && c.accept('...')) {
    skipValue(c, end, ',');
    return { ...shared, kind: 'spread', name: '' };
  }
  // A signature without a name: `(data: T): U`, `new (data: T): U`.
  if (c.is('(') || c.is('<') || (holder === 'type' && c.is('new') && (c.is('(', 1) || c.is('<', 1)))) {
    c.accept('new');
    parseSignature(c);
    return { ...shared, kind: 'other', name: '' };
  }
  // An index signature: `[key: string]: T`.
  if (c.is('[') && c.isName(1) && c.is(':', 2)) return parseIndexSignature(c, shared, from, docIndex);
  // The text of a name in quotes, such as `'#text'`, begins with the quote.
  if (c.token().text.startsWith('#')) modifiers.push('#');
  const nameAndShared = { ...shared, ...parseMemberName(c) };
  const isOptional = c.is('?');
  if (!c.accept('?')) c.accept('!');
  if (c.is('(') || c.is('<')) {
    const { params, result, typeParams } = parseSignature(c);
    const hasBody = c.is('{');
    if (hasBody) c.skipGroup();
    const kind = modifiers.includes('get') || modifiers.includes('set') ? 'accessor' : 'method';
    return { ...nameAndShared, kind, isOptional, params, typeParams, type: result, hasBody };
  }
  if (holder === 'object')
    return { ...nameAndShared, isOptional, kind: 'property', value: parsePropertyValue(c, end, nameAndShared) };
  const type = c.accept(':') ? c.parseType() : undefined;
  const typed =
    type === undefined ? {} : { doc: c.readDocAt(docIndex), type: c.refuseStrayTags(type, from, c.declarationEnd) };
  const decorated = decoratorName === undefined ? {} : { type: refuseDecorator(decoratorName, at) };
  if (holder === 'class' && c.accept('=')) skipValue(c, end, ';', true);
  else if (holder === 'class' && !c.is(';') && c.index < end && !c.token().startsLine) c.fail(';');
  return { ...nameAndShared, kind: 'property', isOptional, ...typed, ...decorated };
}

function parseIndexSignature(c: Cursor, shared: Omit<Member, 'kind' | 'name'>, from: number, docIndex: number): Member {
  c.index += 3;
  const key = c.parseType();
  c.expect(']');
  c.expect(':');
  const params = [{ names: [], name: '', isOptional: false, isRest: false, type: key }];
  const writtenType = c.parseType();
  const doc = c.readDocAt(docIndex);
  const type = c.refuseStrayTags(writtenType, from, c.declarationEnd);
  return { ...shared, kind: 'index', name: '', params, doc, type };
}

function refuseDecorator(name: string, at: number): TypeNode {
  const cure = 'write the constraint as a tag, or give a schema in static operations';
  return { kind: 'mistake', message: `decorators such as @${name} are not read: ${cure}`, at };
}

/** Parses `: value` after the name of an object's property. The value of `{ name }` is a reference to `name`. */
function parsePropertyValue(c: Cursor, end: number, member: Pick<Member, 'name' | 'computed'>): Member['value'] {
  const { name, computed } = member;
  let value: Member['value'];
  if (c.accept(':')) value = c.parseValue(end);
  else if ((c.index >= end || c.is(',')) && computed === undefined) value = { kind: 'reference', name };
  skipValue(c, end, ',');
  return value;
}

export function parseFunction(c: Cursor): FunctionNode {
  return { kind: 'function', ...parseSignature(c) };
}

/** @returns the name of the first decorator */
export function skipDecorators(c: Cursor): string | undefined {
  let first: string | undefined;
  while (c.accept('@')) {
    const name = c.is('(') ? '(…)' : c.parseDottedName(c.expectName());
    first ??= name;
    parseTypeArgs(c);
    if (c.is('(')) c.skipGroup();
  }
  return first;
}

/** Whether the next token can begin a member. If so, the current word is a modifier, and no name. */
function beginsMember(c: Cursor): boolean {
  const { kind, text, startsLine } = c.token(1);
  if (startsLine && !MODIFIERS_ABOVE_MEMBER.test(c.token().text)) return false;
  if (kind === Kind.name || kind === Kind.string || kind === Kind.number || text === '[' || text === '*') return true;
  return text === '{' && c.is('static');
}

function parseMemberName(c: Cursor): Pick<Member, 'name' | 'computed' | 'isNumberKey'> {
  const { kind } = c.token();
  if (kind === Kind.name || kind === Kind.string || kind === Kind.number) {
    const name = readKey(c.token());
    c.index++;
    return kind === Kind.number ? { name, isNumberKey: true } : { name };
  }
  if (!c.is('[')) return c.fail('a member');
  // `['text']`, `[NAME]`, or another expression, whose value is unknown.
  const end = c.closingIndex('[');
  c.index++;
  const keyToken = c.token();
  const isText = keyToken.kind === Kind.string || keyToken.text === '`';
  const computed = c.isName() ? c.parseDottedName(c.expectName()) : '';
  const isOnlyName = c.index === end;
  const isOnlyText = isText && c.index + 1 === end;
  c.index = end + 1;
  return isOnlyText ? { name: keyToken.value } : { name: '', computed: isOnlyName ? computed : '' };
}

/** Returns the name of a field as JavaScript has it: `0x10` is the name `16`. */
const readKey = ({ kind, text, value }: Token): string =>
  kind === Kind.number ? String(Number(text.replaceAll('_', ''))) : value;

function parseSignature(c: Cursor): Omit<FunctionNode, 'kind'> {
  const typeParams = parseTypeParams(c);
  const params = parseParams(c);
  return { typeParams, params, result: c.accept(':') ? c.parseType() : undefined };
}

function parseParams(c: Cursor): Param[] {
  const end = c.closingIndex('(');
  const params: Param[] = [];
  c.index++;
  while (c.index < end) {
    const { doc } = c.token();
    const from = c.index;
    skipDecorators(c);
    // A modifier, such as in `constructor(readonly x: T)`, makes the parameter a field.
    let declaresField = false;
    while (MODIFIERS.has(c.token().text) && c.isName() && c.isName(1)) {
      declaresField = true;
      c.index++;
    }
    const isRest = c.accept('...');
    const isPattern = c.is('{') || c.is('[');
    const names = isPattern ? c.skipPattern().map(({ value }) => value) : [c.expectName()];
    const name = isPattern ? '' : (names[0] as string);
    const isOptional = c.accept('?');
    const hasType = c.accept(':');
    const typeAt = c.token().at;
    const type = hasType ? c.refuseStrayTags(c.parseType(), from, c.index + 1) : undefined;
    const span = [typeAt, c.token().at] as const;
    const hasDefault = c.accept('=');
    if (hasDefault) skipValue(c, end, ',');
    params.push({ names, name, isOptional: isOptional || hasDefault, isRest, type, span, declaresField, doc });
    if (c.index < end) c.expect(',');
  }
  c.index = end + 1;
  return params;
}

export function parseTypeParams(c: Cursor): TypeParam[] {
  const params: TypeParam[] = [];
  if (!c.accept('<')) return params;
  while (!c.accept('>')) {
    while ((c.is('const') || c.is('in') || c.is('out')) && c.isName(1)) c.index++;
    const name = c.expectName();
    const constraint = c.accept('extends') ? c.parseType() : undefined;
    params.push({ name, constraint, fallback: c.accept('=') ? c.parseType() : undefined });
    if (!c.is('>')) c.expect(',');
  }
  return params;
}

export function parseTypeArgs(c: Cursor): TypeNode[] {
  const args: TypeNode[] = [];
  if (!c.is('<') || c.token().startsLine) return args;
  c.index++;
  while (!c.accept('>')) {
    args.push(c.parseType());
    if (!c.is('>')) c.expect(',');
  }
  return args;
}

/** Steps over a value, up to `stop`, `;` or index `end`. @param endsWithLine whether a line break can end the value */
export function skipValue(c: Cursor, end: number, stop: string, endsWithLine = false): void {
  for (const from = c.index; c.index < end; c.index++) {
    if (c.is(stop) || c.is(';')) return;
    // A line break ends the value when the value can be complete there and the next token does not continue it.
    if (
      endsWithLine &&
      c.index > from &&
      c.token().startsLine &&
      endsOperand(c, 0) &&
      !CONTINUES_VALUE.test(c.token().text) &&
      !(c.is('!') && c.is('=', 1)) &&
      c.token().kind !== Kind.template
    )
      return;
    if (c.is('<') && c.isName(-1)) skipTypeArgs(c);
    const partner = c.partner[c.index] as number;
    if (partner >= 0) c.index = partner;
  }
}

/** Whether a value can end directly before the token at `ahead`: after `x`, `)`, `x!` or `x++`, for example. */
function endsOperand(c: Cursor, ahead: number): boolean {
  const { kind, text } = c.token(ahead - 1);
  if (kind !== Kind.punctuation) return true;
  if (text === '!') return endsOperand(c, ahead - 1);
  if ((text === '+' || text === '-') && c.is(text, ahead - 2)) return endsOperand(c, ahead - 2);
  return /^[)\]}]$/.test(text);
}

/** Moves from `<` to `>` in `new Map<string, number>()`, because its comma ends no value. Stays at a less-than sign. */
function skipTypeArgs(c: Cursor): void {
  // The text after a less-than sign is usually no type.
  const areFound = c.attempt(() => {
    parseTypeArgs(c);
    return c.is('(') || c.is('`') || c.is('`${') || undefined;
  });
  if (areFound) c.index--;
}
