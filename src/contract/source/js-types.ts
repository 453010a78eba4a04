// Reads the types of JavaScript files from JSDoc comments: `@typedef`, `@import`, and the `@param` and `@returns` of
// functions. An unsupported tag is an error. An unsupported type is an error only when a request needs the type.
import { isConstraint, unreadConstraintMessage } from './constraint-tags.ts';
import { findBracketEnd, readDoc, type Tag } from './doc-comment.ts';
import { parseJsdocType, splitType, stripBraces } from './jsdoc-type.ts';
import { createDeclaration } from './parse-declaration.ts';
import { SourceError } from './source-error.ts';
import type { Declaration, Import, Member, Module, Param, TypeNode, TypeParam } from './syntax.ts';

export function readTypedefs({ source, docOffsets }: Module): Pick<Module, 'declarations' | 'imports'> {
  const declarations = new Map<string, readonly Declaration[]>();
  const imports = new Map<string, Import>();
  for (const offset of docOffsets) {
    const doc = source.slice(offset, source.indexOf('*/', offset) + 2);
    if (!/@(?:typedef|import)\b/.test(doc)) continue;
    const { text, tags } = readDoc(doc);
    for (const { name, text: value } of tags) if (name === 'import') readImport(value, imports);
    for (const [i, tag] of tags.entries()) {
      if (tag.name !== 'typedef') continue;
      const typedef = readTypedef(tags, i, offset);
      if (typedef === undefined) continue;
      const { name, constraints } = typedef;
      const type = declarations.has(name)
        ? createMistake(`@typedef ${name} is written twice in this file: write it once`, offset)
        : typedef.type;
      const doc = toComment(text + constraints);
      const fields = { typeParams: readTemplates(tags), type, className: '', doc, at: offset + tag.offset };
      declarations.set(name, [createDeclaration('alias', name, fields)]);
    }
  }
  return { declarations, imports };
}

/** Tags that declare something. The constraint tags between such a tag and the next one belong to the first. */
const DECLARING_TAG = /^(?:typedef|callback|import|overload|param|arg|argument|returns?|prop|property)$/;
const isProperty = ({ name }: Tag): boolean => name === 'property' || name === 'prop';
const createMistake = (message: string, at: number): TypeNode => ({ kind: 'mistake', message, at });

type Typedef = { readonly name: string; readonly type: TypeNode; readonly constraints: string };

/** Reads the `@typedef` at index `i`, if it has a name. @param at the offset of the comment */
function readTypedef(tags: readonly Tag[], i: number, at: number): Typedef | undefined {
  const typedef = tags[i] as Tag;
  const { type, rest } = splitType(typedef.text);
  const name = /^[\p{ID_Continue}$.]+/u.exec(rest)?.[0];
  if (name === undefined) return undefined;
  const end = tags.findIndex((tag, j) => j > i && DECLARING_TAG.test(tag.name) && !isProperty(tag));
  const ownTags = tags.slice(i + 1, end < 0 ? undefined : end);
  const fields = ownTags.flatMap((tag, j) =>
    isProperty(tag)
      ? [{ ...readField(tag.text, at + tag.offset), constraints: collectConstraints(ownTags, j + 1) }]
      : [],
  );
  const typeTag = ownTags.find(({ name }) => name === 'type')?.text;
  const typeText = type ?? (typeTag === undefined ? 'Object' : stripBraces(typeTag));
  const node = parseJsdocType(typeText, at + typedef.offset);
  // A constraint before the first `@typedef` belongs to no type, and one after a `@callback` has no effect.
  const isFirst = !tags.slice(0, i).some(({ name }) => name === 'typedef');
  const stray = tags.find((tag, j) => isConstraint(tag) && ((isFirst && j < i) || belongsToOtherTag(tags, j)));
  const message = stray === undefined ? findFieldMistake(fields, 'property') : unreadConstraintMessage(stray);
  const root: Field = { path: '', type: node, isOptional: false, text: '', at: node.at };
  return {
    name,
    type: message === undefined ? (buildType(root, fields, 'property') ?? node) : createMistake(message, node.at),
    constraints: collectConstraints(ownTags, 0),
  };
}

/** Whether the tag at index `i` belongs to a tag that declares something without constraints, such as a `@callback`. */
function belongsToOtherTag(tags: readonly Tag[], i: number): boolean {
  const owner = tags.slice(0, i).findLast(({ name }) => DECLARING_TAG.test(name));
  return owner !== undefined && !/^(?:typedef|prop)/.test(owner.name);
}

/** Writes the tags from index `from` to the next declaring tag as the text of a comment. A `@type` is left out. */
function collectConstraints(tags: readonly Tag[], from: number): string {
  const end = tags.findIndex(({ name }, i) => i >= from && DECLARING_TAG.test(name));
  const between = tags.slice(from, end < 0 ? undefined : end).filter(({ name }) => name !== 'type');
  return between.map(({ name, text, isFirstOnLine }) => `${isFirstOnLine ? '\n' : ' '}@${name} ${text}`).join('');
}

/** Reads `@template T, U` and `@template {string} T - text`. The constraint `{string}` is ignored. */
function readTemplates(tags: readonly Tag[]): TypeParam[] {
  return tags.flatMap(({ name, text }) => {
    const names =
      name === 'template'
        ? /^[\p{ID_Continue}$]+(?:\s*,\s*[\p{ID_Continue}$]+)*/u.exec(splitType(text).rest)?.[0]
        : undefined;
    return names?.split(/\s*,\s*/).map((param) => ({ name: param, constraint: undefined, fallback: undefined })) ?? [];
  });
}

const toComment = (text: string): string | undefined => (text.trim() === '' ? undefined : `/** ${text} */`);

/** @param text the text of an `@import`: `A, { B as C } from './b.js'` */
function readImport(text: string, imports: Map<string, Import>): void {
  const match = /^(?:(\w+)\s*,?\s*)?(?:\{([^}]*)\}|\*\s+as\s+(\w+))?\s*from\s*(['"])(.*?)\4/.exec(text);
  if (match === null) return;
  const [, defaultName, names, moduleName, , from] = match as unknown as (string | undefined)[];
  if (defaultName !== undefined) imports.set(defaultName, { from: from as string, name: 'default' });
  if (moduleName !== undefined) imports.set(moduleName, { from: from as string, name: '*' });
  for (const specifier of names?.split(',') ?? []) {
    const [exported, local = exported] = specifier.trim().split(/\s+as\s+/);
    if (exported) imports.set(local as string, { from: from as string, name: exported });
  }
}

/** Returns the parameters with the types in the comment. @throws SourceError for an unsupported form */
export function withDocTypes(params: readonly Param[], doc: string | undefined, at: number): readonly Param[] {
  const { tags } = readDoc(doc);
  const fail = (message: string): never => {
    throw new SourceError(message, at);
  };
  const fields = tags
    .filter(({ name }) => /^(?:param|arg|argument)$/.test(name))
    .map(({ text }) => readField(text, at));
  const hasTypes = fields.some(({ type }) => type !== undefined);
  const unreadTag = tags.find(({ name }) => /^(?:overload|type)$/.test(name) || (name === 'template' && hasTypes));
  if (unreadTag !== undefined) fail(`@${unreadTag.name} of an operation is not read: write @param`);
  const message = findFieldMistake(fields, 'param');
  if (message !== undefined) fail(message);
  const typedParams = params.map((param) => readInlineType(param, at));
  for (const [i, field] of findChildren('', fields).entries()) {
    const type = buildType(field, fields, 'param');
    if (type === undefined) continue;
    // A destructured parameter (`{ name, age }`) has no name of its own, so its tag is found by the position.
    const sameName = params.findIndex(({ name }) => name === field.path);
    const index = sameName >= 0 ? sameName : params[i]?.name === '' ? i : -1;
    if (index < 0) fail(`@param ${field.path || 'without a name'} is no parameter of the operation`);
    if (typedParams[index]?.type !== undefined) fail(`@param ${field.path} already has a type: write only one`);
    typedParams[index] = { ...(params[index] as Param), type, typeEnd: at, isOptional: field.isOptional };
  }
  return typedParams;
}

/** Returns the parameter with the type in its own comment: `created(/** @type {T} *\/ data)`. */
function readInlineType(param: Param, at: number): Param {
  const text = readDoc(param.doc).tags.find(({ name }) => name === 'type')?.text;
  return text === undefined ? param : { ...param, type: parseJsdocType(stripBraces(text), at), typeEnd: at };
}

export function docResult(doc: string | undefined, at: number): TypeNode | undefined {
  const tag = readDoc(doc).tags.find(({ name }) => name === 'returns' || name === 'return');
  const type = tag === undefined ? undefined : splitType(tag.text).type;
  return type === undefined ? undefined : parseJsdocType(type, at);
}

/** A `@param` or a `@property`. The field `data.items` is a child of the field `data`. */
interface Field {
  /** The dotted name without `[]`: `data.items.name`. */
  readonly path: string;
  /** The name as written: `data.items[].name`. */
  readonly written?: string;
  readonly type: TypeNode | undefined;
  readonly isOptional: boolean;
  readonly text: string;
  readonly at: number;
  /** The constraint tags of the field, as the text of a comment. */
  readonly constraints?: string;
}

/** Reads the text of a `@param` or a `@property`: `{T} name - text`, `{T} [name=1]`, `{T=} name` or `name {T}`. */
function readField(text: string, at: number): Field {
  const beforeName = splitType(text);
  const end = beforeName.rest.startsWith('[') ? findBracketEnd(beforeName.rest, 0, '[]') : -1;
  const [quotedName = '', plainName = ''] = /^`?([\p{ID_Continue}$.[\]]*)`?/u.exec(beforeName.rest) ?? [];
  const written = end < 0 ? plainName : (beforeName.rest.slice(1, end - 1).split('=')[0] as string).trim();
  const afterName = beforeName.rest.slice(end < 0 ? quotedName.length : end);
  const { type, rest } = beforeName.type === undefined ? splitType(afterName) : { ...beforeName, rest: afterName };
  return {
    path: written.replaceAll('[]', ''),
    written,
    type: type === undefined ? undefined : parseJsdocType(type, at),
    isOptional: end >= 0 || type?.endsWith('=') === true,
    text: rest.replace(/^[\s-]+/, ''),
    at,
  };
}

/** `data.items` for `data.items.name`, and '' for `data` */
const parentOf = (path: string): string => path.slice(0, Math.max(path.lastIndexOf('.'), 0));
const findChildren = (parent: string, fields: readonly Field[]): readonly Field[] =>
  fields.filter(({ path }) => parentOf(path) === parent);

/** Finds a field that is written twice, or whose parent is missing. */
function findFieldMistake(fields: readonly Field[], tag: string): string | undefined {
  for (const [i, { path, type }] of fields.entries()) {
    if (fields.findIndex((field) => field.path === path) !== i)
      return `@${tag} ${path} is written twice: write it once`;
    const parent = parentOf(path);
    if (parent !== '' && type !== undefined && !fields.some((field) => field.path === parent))
      return `@${tag} ${path} has no parent: write @${tag} {Object} ${parent} before it`;
  }
  return undefined;
}

/** The child fields become the members of an object, or of the objects in a list. */
function buildType({ path, type, at }: Field, fields: readonly Field[], tag: string): TypeNode | undefined {
  const children = findChildren(path, fields);
  const isList = type?.kind === 'array';
  const element = isList ? type.element : type;
  const isObject = element?.kind === 'word' && (element.name === 'any' || element.name === 'object');
  if (isObject && children.length > 0) {
    const listChild = children.find(({ written }) => written?.startsWith(`${path}[]`));
    if (listChild !== undefined && !isList)
      return createMistake(`@${tag} ${listChild.written}: ${path} is not a list: write {Object[]} ${path}`, at);
    const members = children.map((child) => buildMember(child, path, fields, tag));
    const node: TypeNode = { kind: 'object', members, at };
    return isList ? { kind: 'array', element: node, at } : node;
  }
  const typedChild = children.find((child) => child.type !== undefined);
  if (typedChild === undefined) return type;
  const cure = type === undefined ? `write @${tag} {Object} ${path}` : 'write all fields in one place';
  return createMistake(`@${tag} ${typedChild.path} is a field of something that is not an Object: ${cure}`, at);
}

function buildMember(field: Field, parent: string, fields: readonly Field[], tag: string): Member {
  const { path, isOptional, text, constraints = '', at } = field;
  const type = buildType(field, fields, tag) ?? { kind: 'word', name: 'any', at };
  const name = parent === '' ? path : path.slice(parent.length + 1);
  // The text is written as a `@description`, because backticks hide an at sign only in the text of a tag.
  const doc = toComment((text === '' ? '' : `@description ${text}`) + constraints);
  return { kind: 'property', name, modifiers: [], isOptional, doc, type, params: [], hasBody: false, at };
}
