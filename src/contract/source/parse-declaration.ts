// Creates declarations, and parses classes and interfaces from behind their name: their parents and their body.
import type { Cursor } from './cursor.ts';
import { parseMembers, parseTypeArgs, parseTypeParams } from './parse-members.ts';
import type { Declaration, TypeNode } from './syntax.ts';

export function createDeclaration(
  kind: Declaration['kind'],
  name: string,
  fields: Partial<Declaration> & Pick<Declaration, 'at'>,
): Declaration {
  const empty = { namespace: '', typeParams: [], parents: [], members: [], className: name, doc: undefined };
  return { ...empty, kind, name, type: undefined, literalRange: undefined, value: undefined, ...fields };
}

/** Parses the name of a class. Returns undefined when the class has no name. */
export function parseClassName(c: Cursor): string | undefined {
  return c.isName() && !c.is('extends') && !c.is('implements') ? c.expectName() : undefined;
}

/** Parses a class or an interface. The cursor moves from behind the name to behind the closing brace. */
export function parseBody(
  c: Cursor,
  kind: 'interface' | 'class',
  name: string,
  fields: Pick<Declaration, 'doc' | 'at'>,
): Declaration {
  const from = c.i;
  const typeParams = parseTypeParams(c);
  const parents = parseParents(c);
  const end = c.closingIndex('{');
  c.i++;
  if (kind === 'interface') {
    const checked = c.refuseStrayTags({ kind: 'word', name: 'unknown', at: c.token().at }, from);
    if (checked.kind === 'mistake') parents.push(checked);
  }
  const members = parseMembers(c, end, kind === 'class' ? 'class' : 'type');
  c.i = end + 1;
  return createDeclaration(kind, name, { namespace: c.namespace, typeParams, parents, members, ...fields });
}

function parseParents(c: Cursor): TypeNode[] {
  const parents: TypeNode[] = [];
  while (c.is('extends') || c.is('implements')) {
    const isParent = c.next().text === 'extends';
    do {
      const { at } = c.token();
      const from = c.i;
      if (!c.isName() || c.is('class')) {
        if (c.is('class')) {
          // In `extends class {} {`, the first braces are the body of the parent.
          c.skipTo('{');
          c.skip();
        }
        c.skipTo('{');
        if (isParent) parents.push({ kind: 'unsupported', form: 'a class made by an expression', at });
        continue;
      }
      const name = c.parseDottedName(c.expectName());
      const args = parseTypeArgs(c);
      const isPlainName = c.is('{') || c.is(',') || c.is('implements');
      if (!isPlainName) c.skipTo('{');
      if (!isPlainName) parents.push({ kind: 'unsupported', form: 'a class made by a call', at });
      else if (isParent) parents.push(c.refuseStrayTags({ kind: 'name', name, args, at }, from));
    } while (c.accept(','));
  }
  return parents;
}
