// Creates declarations, and parses the part of classes and interfaces that comes after the name: parents and body.
import type { Cursor } from './cursor.ts';
import { parseMembers, parseTypeArgs, parseTypeParams } from './parse-members.ts';
import type { Declaration, TypeNode } from './syntax.ts';

export type Origin = Pick<Declaration, 'doc' | 'at'>;
export type Fields = Partial<Declaration> & Pick<Declaration, 'at'>;

/** Creates a declaration. The fields that `fields` does not have are empty. */
export function createDeclaration(kind: Declaration['kind'], name: string, fields: Fields): Declaration {
  const empty = { namespace: '', typeParams: [], parents: [], members: [], className: name, doc: undefined };
  return { ...empty, kind, name, type: undefined, literalRange: undefined, value: undefined, ...fields };
}

/** Parses the name of a class. Returns undefined when the class has no name. */
export function parseClassName(c: Cursor): string | undefined {
  return c.isName() && !c.is('extends') && !c.is('implements') ? c.expectName() : undefined;
}

/** Parses a class or an interface. The cursor moves from the token after the name to the token after the last brace. */
export function parseBody(c: Cursor, kind: 'interface' | 'class', name: string, origin: Origin): Declaration {
  const from = c.index;
  const typeParams = parseTypeParams(c);
  const parents = parseParents(c);
  const end = c.closingIndex('{');
  c.index++;
  if (kind === 'interface') {
    // A mistake becomes a parent, because a declaration has no other place for it. The type `unknown` is a placeholder.
    const checked = c.refuseStrayTags({ kind: 'word', name: 'unknown', at: c.token().at }, from);
    if (checked.kind === 'mistake') parents.push(checked);
  }
  const members = parseMembers(c, end, kind === 'class' ? 'class' : 'type');
  c.index = end + 1;
  return createDeclaration(kind, name, { namespace: c.namespace, typeParams, parents, members, ...origin });
}

/** Parses `extends A, B` and `implements C`. Returns the types after `extends`. */
function parseParents(c: Cursor): TypeNode[] {
  const parents: TypeNode[] = [];
  while (c.is('extends') || c.is('implements')) {
    const isExtends = c.next().text === 'extends';
    do {
      const { at } = c.token();
      const from = c.index;
      if (!c.isName() || c.is('class')) {
        if (c.is('class')) {
          // In `extends class {} {`, the first braces are the body of the parent.
          c.skipTo('{');
          c.skipGroup();
        }
        c.skipTo('{');
        if (isExtends) parents.push({ kind: 'unsupported', form: 'a class made by an expression', at });
        continue;
      }
      const name = c.parseDottedName(c.expectName());
      const args = parseTypeArgs(c);
      const isPlainName = c.is('{') || c.is(',') || c.is('implements');
      if (!isPlainName) c.skipTo('{');
      if (!isPlainName) parents.push({ kind: 'unsupported', form: 'a class made by a call', at });
      else if (isExtends) parents.push(c.refuseStrayTags({ kind: 'name', name, args, at }, from));
    } while (c.accept(','));
  }
  return parents;
}
