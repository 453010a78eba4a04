// A declaration out of its parts, and the body of a class or an interface with what it extends.
import type { Cursor } from './cursor.ts';
import { parseMembers, parseTypeArgs, parseTypeParams } from './parse-members.ts';
import type { Declaration, TypeNode } from './syntax.ts';

export function declarationOf(
  c: Cursor,
  kind: Declaration['kind'],
  name: string,
  rest: Partial<Declaration>,
): Declaration {
  return {
    kind,
    name,
    inside: c.inside,
    params: [],
    parents: [],
    members: [],
    type: undefined,
    literal: undefined,
    value: undefined,
    className: name,
    doc: undefined,
    at: c.token().at,
    ...rest,
  };
}

/** The name that stands in a class expression; undefined: it has none. */
export function classNameAt(c: Cursor): string | undefined {
  return c.isName() && !c.is('extends') && !c.is('implements') ? c.name() : undefined;
}

/** From behind the name of a class or an interface to behind its closing brace. */
export function parseBody(
  c: Cursor,
  kind: 'interface' | 'class',
  name: string,
  rest: Partial<Declaration>,
): Declaration {
  const from = c.i;
  const params = parseTypeParams(c);
  const parents = heritage(c);
  const end = c.end('{');
  c.i++;
  if (kind === 'interface') {
    const head = c.sound({ kind: 'word', name: 'unknown', at: c.token().at }, from);
    if (head.kind === 'mistake') parents.push(head);
  }
  const members = parseMembers(c, end, kind === 'class' ? 'class' : 'type');
  c.i = end + 1;
  return declarationOf(c, kind, name, { params, parents, members, ...rest });
}

function heritage(c: Cursor): TypeNode[] {
  const parents: TypeNode[] = [];
  while (c.is('extends') || c.is('implements')) {
    const isParent = c.next().text === 'extends';
    do {
      const { at } = c.token();
      const from = c.i;
      if (!c.isName() || c.is('class')) {
        if (c.is('class')) {
          c.skipTo('{');
          c.skip();
        }
        c.skipTo('{');
        if (isParent) parents.push({ kind: 'other', what: 'a class made by an expression', at });
        continue;
      }
      const name = c.dotted(c.name());
      const args = parseTypeArgs(c);
      const isPlain = c.is('{') || c.is(',') || c.is('implements');
      if (!isPlain) c.skipTo('{');
      if (!isPlain) parents.push({ kind: 'other', what: 'a class made by a call', at });
      else if (isParent) parents.push(c.sound({ kind: 'name', name, args, at }, from));
    } while (c.take(','));
  }
  return parents;
}
