// The class or object that a controller file exports, with its ancestors, found in the source, in whatever file each stands.
import type { Evaluator } from './evaluate.ts';
import { type FoundValue, findExport, findValue, type Scope } from './look-up.ts';
import { Unsupported } from './source-error.ts';
import type { Declaration, FunctionNode, Member, TypeNode } from './syntax.ts';

export interface Level {
  /** What `constructor.name` is at run time; undefined for an object. */
  readonly className: string | undefined;
  readonly members: readonly Member[];
  /** Where its types are looked up, its own type parameters filled in. */
  readonly scope: Scope;
  readonly doc: string | undefined;
  /** It has an ancestor that could not be followed. */
  readonly isOpenEnded: boolean;
}

const NO_PARAMS: Scope['params'] = new Map();

/** Nearest first; empty when what is exported is made by code that is not followed (`export default make()`). */
export function findLevels(path: string, group: string, evaluator: Evaluator, module: Scope['module']): Level[] {
  const scope: Scope = { path, module, params: NO_PARAMS };
  for (const name of ['default', `${group}Controller`]) {
    const found = findExport(name, scope, evaluator.load);
    if (found === undefined || found.rest.length > 0) continue;
    if (found.declaration.kind === 'class') return classLevels(found, evaluator);
    if (found.declaration.kind === 'object') return [objectLevel(found)];
    // A default that is something else is no group, or nobody can tell.
    if (name === 'default') return [];
  }
  return [];
}

function objectLevel({ declaration, scope }: FoundValue): Level {
  return { className: undefined, members: declaration.members, scope, doc: declaration.doc, isOpenEnded: false };
}

function classLevels(start: FoundValue, evaluator: Evaluator): Level[] {
  const levels: Level[] = [];
  const seen = new Set<unknown>();
  let found: FoundValue | undefined = start;
  let params: Scope['params'] = bindSafely(evaluator, start, []);
  while (found !== undefined && found.declaration.kind === 'class' && found.rest.length === 0 && !seen.has(found.declaration)) {
    const declaration: Declaration = found.declaration;
    seen.add(declaration);
    const scope: Scope = { ...found.scope, params, inside: declaration.inside };
    const parent: TypeNode | undefined = declaration.parents[0];
    const above: FoundValue | undefined = parent?.kind === 'name' ? findValue(parent.name, scope, evaluator.load) : undefined;
    const isOpenEnded = parent !== undefined && (above === undefined || above.declaration.kind !== 'class');
    levels.push({ className: declaration.className, members: declaration.members, scope, doc: declaration.doc, isOpenEnded });
    if (above === undefined || parent?.kind !== 'name') break;
    params = bindSafely(
      evaluator,
      above,
      parent.args.map((arg) => () => evaluator.evaluate(arg, scope)),
    );
    found = above;
  }
  return levels;
}

/** Type arguments that are not understood are an error only for who uses them. */
function bindSafely(
  evaluator: Evaluator,
  { declaration, scope }: FoundValue,
  args: readonly (() => ReturnType<Evaluator['evaluate']>)[],
): Scope['params'] {
  const params = new Map<string, ReturnType<Evaluator['evaluate']>>();
  declaration.params.forEach(({ name, fallback }, i) => {
    const arg = args[i];
    const home: Scope = { ...scope, params };
    try {
      if (arg !== undefined) params.set(name, arg());
      else if (fallback !== undefined) params.set(name, evaluator.evaluate(fallback, home));
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error;
    }
  });
  return params;
}

/** A method, or a function in the place of one. */
export interface FoundMethod {
  readonly params: FunctionNode['params'];
  readonly open: number | undefined;
  readonly result: FunctionNode['result'];
  readonly doc: string | undefined;
  readonly at: number;
  readonly scope: Scope;
  /** It has several signatures, and types in one of them. */
  readonly isOverloaded: boolean;
}

/** The nearest level's method of that name; undefined when there is none, or it is a value that is not followed. */
export function findMethod(levels: readonly Level[], name: string, evaluator: Evaluator): FoundMethod | undefined {
  for (const { members, scope } of levels) {
    const found = members.filter((member) => member.name === name && !member.modifiers.includes('static') && isCallable(member));
    const [first] = found;
    if (first === undefined) continue;
    const methods = found.filter(({ kind }) => kind === 'method');
    const isOverloaded = methods.length > 1 && methods.some(isAnnotated);
    const doc = found.find((member) => member.doc !== undefined)?.doc;
    if (first.kind === 'method') {
      const { open } = methods.find(({ body }) => body) ?? first;
      return { params: first.params, open, result: first.type, doc, at: first.at, scope, isOverloaded };
    }
    if (first.value?.kind === 'function') return { ...first.value, doc, at: first.at, scope, isOverloaded: false };
    return first.value === undefined ? undefined : behindName(first, first.value.name, scope, evaluator);
  }
  return undefined;
}

const isAnnotated = ({ params }: Pick<FunctionNode, 'params'>): boolean => params.some(({ type }) => type !== undefined);
const isCallable = ({ kind, value }: Member): boolean => kind === 'method' || (kind === 'property' && value !== undefined);

/** `{ created: createUser }`, where the function stands beside it or in another file. */
function behindName(member: Member, name: string, scope: Scope, evaluator: Evaluator): FoundMethod | undefined {
  const found = findValue(name, scope, evaluator.load);
  const callable = found?.declaration.callable;
  if (found === undefined || callable === undefined || found.rest.length > 0) return undefined;
  const { declaration } = found;
  const all = found.scope.module.declarations.get(declaration.inside + declaration.name) ?? [];
  const functions = all.flatMap(({ kind, callable: one }) => (kind === 'function' && one !== undefined ? [one] : []));
  const isOverloaded = functions.length > 1 && functions.some(isAnnotated);
  return { ...callable, doc: member.doc ?? declaration.doc, at: declaration.at, scope: found.scope, isOverloaded };
}
