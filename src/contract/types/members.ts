// Evaluates the members of object types, interfaces and classes to a record (the shape of an object), with the
// constraints in the members' comments. `failAt` throws the errors of the evaluator.
import { findUnreadConstraint, readConstraints } from '../source/constraint-tags.ts';
import { CircularType, readOr, Unsupported, WRITE_OUT } from '../source/source-error.ts';
import type { Member, TypeNode } from '../source/syntax.ts';
import { isMarkedHidden, readMemberKey, type Scope } from './look-up.ts';
import { constrain } from './narrow.ts';
import {
  type Fail,
  failingShape,
  type NamedShape,
  NO_NOTES,
  type Prop,
  type RecordShape,
  refuseEndless,
  resolve,
  type Shape,
  UNREAD_KEY,
} from './shape.ts';

/** Functions of evaluate.ts. They are passed in, because evaluate.ts imports this file. */
export interface MemberTools {
  evaluate(node: TypeNode, scope: Scope): Shape;
  /** Returns a shape that is evaluated when it is first needed. @param circularError if it needs itself */
  defer(name: string, createShape: () => Shape, circularError: CircularType): NamedShape;
  addWanted(error: Unsupported): Unsupported;
}

/** @param base the record of the parents, and of earlier declarations of the same interface */
export function evaluateMembers(
  members: readonly Member[],
  scope: Scope,
  tools: MemberTools,
  base?: RecordShape,
): RecordShape {
  const props = new Map(base?.props);
  let { index, isNumberIndex } = base ?? { index: undefined };
  for (const member of members) {
    const { kind, name, type, modifiers, at } = member;
    const fail = failAt(scope, at);
    if (member.params.some(({ declaresField }) => declaresField))
      fail('a class whose constructor declares fields is not understood');
    if (modifiers.includes('static') || (kind === 'method' && name === 'constructor')) {
      refuseStrayConstraint(member.doc, fail);
      continue;
    }
    if (modifiers.includes('#') || isMarkedHidden(member)) fail('a class with private members is not a plain object');
    if (kind === 'index') {
      const key = resolve(tools.evaluate(member.params[0]?.type as TypeNode, scope));
      const isPlain = (key.kind === 'string' || key.kind === 'number') && key.keywords === undefined;
      if (!isPlain) fail(...UNREAD_KEY);
      if (index !== undefined && isNumberIndex !== (key.kind === 'number'))
        fail('index signatures by string and by number together are not understood');
      isNumberIndex = key.kind === 'number';
      index = constrainField(member, tools.evaluate(type as TypeNode, scope), fail).shape;
      continue;
    }
    const key = readMemberKey(member, scope);
    if (key === undefined || kind === 'other') fail('a computed member or a signature without a name has no JSON form');
    else if (key === '__proto__') fail('a field named __proto__ is not supported: give it another name');
    // The key of a symbol is empty. A field with such a key is left out, because JSON has no symbols.
    else if (key !== '' || member.computed === undefined) {
      const prop = evaluateFieldOrDefer(member, key, scope, tools, fail);
      props.set(key, member.isNumberKey === true ? { ...prop, isNumberKey: true } : prop);
    }
  }
  const isOpen = base === undefined && members.length === 0;
  return { kind: 'record', props, index, isNumberIndex, ...(isOpen ? { isOpen: true } : {}) };
}

function evaluateField(member: Member, name: string, scope: Scope, tools: MemberTools, fail: Fail): Prop {
  if (member.kind !== 'property') return fail(`${name} is a method or an accessor, and has no JSON form`);
  if (member.type === undefined) return fail(`the field ${name} has no type`, WRITE_OUT);
  const prop = constrainField(member, tools.evaluate(member.type, scope), fail);
  const isOwn = !/\.d\.[cm]?ts$|[\\/]node_modules[\\/]/.test(scope.path);
  return prop.isOptional && 'default' in prop.notes && isOwn ? { ...prop, fillsDefault: true } : prop;
}

/**
 * An unsupported type is an error only for a request that needs the field. A type that needs the object around it, as
 * in `interface Node { id: string; parent: Node['id'] }`, is evaluated when it is first needed.
 */
function evaluateFieldOrDefer(member: Member, name: string, scope: Scope, tools: MemberTools, fail: Fail): Prop {
  const evaluate = () => evaluateField(member, name, scope, tools, fail);
  return readOr(evaluate, (error): Prop => {
    const isCircular = error instanceof CircularType;
    const notes = member.doc === undefined ? NO_NOTES : readConstraintsOrFail(member.doc, fail).notes;
    const shape = isCircular
      ? tools.defer(name, () => refuseEndless(evaluate().shape), error)
      : failingShape(tools.addWanted(error));
    return { shape, isOptional: member.isOptional, notes };
  });
}

function constrainField({ doc, isOptional }: Member, shape: Shape, fail: Fail): Prop {
  if (doc === undefined) return { shape, isOptional, notes: NO_NOTES };
  const { keywords, notes } = readConstraintsOrFail(doc, fail);
  return { shape: constrain(shape, keywords, fail), isOptional, notes };
}

export function failAt({ path }: Scope, at: number): Fail {
  return (message, cure = message.endsWith('is not understood') ? WRITE_OUT : undefined) => {
    throw new Unsupported(message, path, at, cure);
  };
}

export function refuseStrayConstraint(doc: string | undefined, fail: Fail): void {
  const message = findUnreadConstraint(doc);
  if (message !== undefined) fail(message, '');
}

export function readConstraintsOrFail(doc: string | undefined, fail: Fail) {
  try {
    return readConstraints(doc);
  } catch (error) {
    return fail((error as Error).message, '');
  }
}
