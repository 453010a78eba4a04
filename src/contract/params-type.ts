// The second parameter of an operation, as far as a request decides it: its path, and its query unless a library's schema does.

import type { Loader } from './evaluate.ts';
import { findType, type Scope } from './look-up.ts';
import type { NameNode, TypeNode } from './syntax.ts';

/** The type with what is to be read of it; in the file of the operation it is followed by name. */
export function paramsType(type: TypeNode | undefined, readsQuery: boolean, scope: Scope, load: Loader): TypeNode | undefined {
  return inner(type, (name) => name === 'path' || (name === 'query' && readsQuery));

  function inner(node: TypeNode | undefined, isRead: (name: string) => boolean): TypeNode | undefined {
    if (node?.kind === 'object') return { ...node, members: node.members.filter(({ name }) => isRead(name)) };
    if (node?.kind !== 'name') return node;
    const found = findType(node, scope, load);
    if (found === undefined || found === 'package') return node;
    if ('own' in found) return ofControllerParams(node);
    if (!('declarations' in found) || found.scope.path !== scope.path || node.args.length > 0) return node;
    const [only] = found.declarations;
    if (only === undefined || found.declarations.length > 1 || only.params.length > 0) return node;
    if (only.kind === 'alias' && only.inside === '') return inner(only.type, isRead);
    const isPlain = only.kind === 'interface' && only.parents.length === 0;
    return isPlain ? inner({ kind: 'object', members: only.members, at: only.at }, isRead) : node;
  }

  /** What it does not know is refused by who reads it, so it stays. */
  function ofControllerParams(node: NameNode): TypeNode {
    const [shape] = node.args;
    return shape === undefined ? node : { ...node, args: [inner(shape, (name) => name !== 'query' || readsQuery) as TypeNode] };
  }
}
