// Creates declarations, and parses the part of classes and interfaces that comes after the name.
import type { Cursor } from './cursor.ts';
import { parseMembers, parseTypeArgs, parseTypeParams } from './parse-members.ts';
import type { Declaration, TypeNode } from './syntax.ts';

export type DocAndPlace = Pick<Declaration, 'doc' | 'at'>;
export type Fields = Partial<Declaration> & Pick<Declaration, 'at'>;

export function createDeclaration(kind: Declaration['kind'], name: string, fields: Fields): Declaration {
  const empty = { typeParams: [], parents: [], members: [], doc: undefined };
  return { ...empty, kind, name, type: undefined, literalRange: undefined, value: undefined, ...fields };
}

export function parseParentsAndMembers(c: Cursor, kind: 'interface' | 'class', name: string, docAndPlace: DocAndPlace) {
  const from = c.index;
  const typeParams = parseTypeParams(c);
  const isDerived = c.is('extends') || c.is('implements');
  const parents = parseParents(c);
  const end = c.closingIndex('{');
  c.index++;
  if (kind === 'interface') {
    // A constraint in a comment before the `{` has no effect, so it is a mistake. The mistake is added to the parents:
    // the use of the interface evaluates its parents, and refuses the mistake. None is added to the parents of a class,
    // because they are followed to the code that runs.
    const unused: TypeNode = { kind: 'word', name: 'unknown', at: c.token().at };
    const typeOrMistake = c.refuseStrayTags(unused, from);
    if (typeOrMistake.kind === 'mistake') parents.push(typeOrMistake);
  }
  const members = parseMembers(c, end, kind === 'class' ? 'class' : 'type');
  c.index = end + 1;
  return createDeclaration(kind, name, { typeParams, parents, isDerived, members, ...docAndPlace });
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
          // `class A extends class { … } { … }`: the first braces are the body of the parent.
          c.skipTo('{');
          c.skipGroup();
        }
        c.skipTo('{');
        if (isExtends) parents.push({ kind: 'unsupported', form: 'a class made by an expression', at });
        continue;
      }
      const name = c.parseDottedName(c.expectName());
      const args = parseTypeArgs(c);
      const endsAfterName = c.is('{') || c.is(',') || c.is('implements');
      if (!endsAfterName) c.skipTo('{');
      if (!endsAfterName) parents.push({ kind: 'unsupported', form: 'a class made by a call', at });
      else if (isExtends) parents.push(c.refuseStrayTags({ kind: 'name', name, args, at }, from));
    } while (c.accept(','));
  }
  return parents;
}
