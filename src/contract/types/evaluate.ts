// From types as they are written to what they mean: shapes. Names are looked up by look-up.ts, utility types are worked
// out by utility-types.ts; whatever is not understood throws Unsupported, with its place.
import { constraintsOf, idleIn } from '../source/constraint-tags.ts';
import { CircularType, Unsupported } from '../source/source-error.ts';
import type { Declaration, Member, Module, NameNode, TypeNode, TypeParam } from '../source/syntax.ts';
import { constantAt, enumShape, findType, findValue, keyOf, readConstant, type Scope } from './look-up.ts';
import { constrain, intersect, isStructure } from './narrow.ts';
import {
  constants,
  type Fail,
  followed,
  idOf,
  type NamedShape,
  NO_NOTES,
  nameOf,
  once,
  open,
  type Prop,
  poison,
  type RecordShape,
  type Shape,
  type TupleShapeItem,
  unite,
  without,
} from './shape.ts';
import { templateShape } from './template.ts';
import { GLOBALS, keysOf, OWN, propertyOf, utilityType, word } from './utility-types.ts';

/** @returns the own file that is meant. `package`: it has no source here. Undefined: nothing is found */
export type Loader = (from: string, specifier: string) => { path: string; module: Module } | 'package' | undefined;

export interface Evaluator {
  /** @throws Unsupported */
  evaluate(node: TypeNode, scope: Scope): Shape;
  /** The shapes of type parameters: the argument, the default, the constraint, or anything. */
  bind(params: readonly TypeParam[], args: readonly Shape[], home: Scope): ReadonlyMap<string, Shape>;
  readonly load: Loader;
}

const MOST_NAMED = 2000;

export function createEvaluator(load: Loader): Evaluator {
  const named = new Map<string, NamedShape>();
  let latest = 0;

  function evaluate(node: TypeNode, scope: Scope): Shape {
    const fail = failAt(scope, node.at);
    switch (node.kind) {
      case 'word':
        return word(node.name) ?? fail(`${node.name} has no JSON form`);
      case 'literal':
        return node.value === null ? { kind: 'null' } : { kind: 'const', value: node.value };
      case 'array':
        return { kind: 'array', of: evaluate(node.of, scope) };
      case 'readonly':
        return evaluate(node.of, scope);
      case 'tuple':
        return tuple(node, scope, fail);
      case 'union':
        return unite(node.of.map((part) => evaluate(part, scope)));
      case 'intersection':
        return node.of.map((part) => evaluate(part, scope)).reduce((a, b) => intersect(a, b, fail));
      case 'object':
        return record(node.members, scope);
      case 'keyof':
        return keysOf(evaluate(node.of, scope), fail);
      case 'at':
        return propertyOf(evaluate(node.object, scope), evaluate(node.key, scope), fail);
      case 'typeof':
        return typeOf(node.name, scope) ?? fail(`the value ${node.name} is no constant that can be read here`);
      case 'template':
        return template(node, scope, fail);
      case 'mapped':
        return mapped(node, scope, fail);
      case 'name':
        return reference(node, scope, fail);
      case 'other':
        return fail(`${node.what} is not understood`);
      case 'mistake':
        return fail(node.message, '');
    }
  }

  function tuple(node: Extract<TypeNode, { kind: 'tuple' }>, scope: Scope, fail: Fail): Shape {
    const items: TupleShapeItem[] = [];
    let rest: Shape | undefined;
    for (const item of node.items) {
      const of = evaluate(item.type, scope);
      if (rest !== undefined) fail('a tuple with something behind its rest is not understood');
      if (!item.rest) {
        items.push({ of, optional: item.optional });
        continue;
      }
      const spread = open(of);
      if (spread.kind === 'array' && spread.keywords === undefined) rest = spread.of;
      else if (spread.kind === 'tuple' && spread.rest === undefined) items.push(...spread.items);
      else fail('this rest of a tuple is not understood');
    }
    return { kind: 'tuple', items, rest };
  }

  function record(members: readonly Member[], scope: Scope, base?: RecordShape): RecordShape {
    const props = new Map(base?.props);
    let { index, byNumber } = base ?? { index: undefined };
    for (const member of members) {
      const { kind, name, type, modifiers, at } = member;
      const fail = failAt(scope, at);
      if (member.params.some(({ declares }) => declares))
        fail('a class whose constructor declares fields is not understood');
      if (modifiers.includes('static') || (kind === 'method' && name === 'constructor')) {
        refuseIdle(member.doc, fail);
        continue;
      }
      if (name.startsWith('#') || modifiers.some((word) => word === 'private' || word === 'protected')) {
        fail('a class with private members is no plain object');
      }
      if (kind === 'index') {
        const key = open(evaluate(member.params[0]?.type as TypeNode, scope));
        const isPlain = (key.kind === 'string' || key.kind === 'number') && key.keywords === undefined;
        if (!isPlain) fail('this kind of key is not understood');
        if (index !== undefined && byNumber !== (key.kind === 'number'))
          fail('index signatures by string and by number together are not understood');
        byNumber = key.kind === 'number';
        index = property(member, evaluate(type as TypeNode, scope), fail).of;
        continue;
      }
      const key = keyOf(member, scope, load);
      if (key === undefined || kind === 'other')
        fail('a computed member or a signature without a name has no JSON form');
      else if (key === '__proto__') fail('a field __proto__ is not taken');
      // A field whose key is a symbol is a brand: no JSON has it.
      else if (key !== '') props.set(key, safely(member, key, scope, fail));
    }
    const isOpen = base === undefined && members.length === 0;
    return { kind: 'record', props, index, byNumber, ...(isOpen ? { open: true } : {}) };
  }

  function field(member: Member, name: string, scope: Scope, fail: Fail): Prop {
    if (member.kind !== 'property') return fail(`${name} is a method or an accessor, and has no JSON form`);
    if (member.type === undefined) return fail(`the field ${name} has no type`);
    return property(member, evaluate(member.type, scope), fail);
  }

  /**
   * A field that is not understood is an error only where it is needed. One that is being worked out is asked for
   * later.
   */
  function safely(member: Member, name: string, scope: Scope, fail: Fail): Prop {
    try {
      return field(member, name, scope, fail);
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error;
      const isCircular = error instanceof CircularType;
      const notes = member.doc === undefined ? NO_NOTES : readConstraints(member.doc, fail).notes;
      const of = isCircular ? later(name, () => followed(field(member, name, scope, fail).of), error) : poison(error);
      return { of, optional: member.optional, notes };
    }
  }

  function later(name: string, work: () => Shape, circular: CircularType): NamedShape {
    return { kind: 'named', name, id: `later ${++latest}`, notes: NO_NOTES, target: once(work, circular) };
  }

  function property({ doc, optional }: Member, of: Shape, fail: Fail): Prop {
    if (doc === undefined) return { of, optional, notes: NO_NOTES };
    const { keywords, notes } = readConstraints(doc, fail);
    return { of: constrain(of, keywords, fail), optional, notes };
  }

  function reference(node: NameNode, scope: Scope, fail: Fail): Shape {
    const { name } = node;
    const param = node.from === undefined ? scope.params.get(name) : undefined;
    if (param !== undefined) return param;
    const found = findType(node, scope, load);
    if (found === 'package') return fail(`${name} comes from a package, whose types are not read`);
    if (found !== undefined && 'missing' in found)
      return fail(`${name} is imported from ${found.missing}, which is not found`);
    const args = node.args.map((arg) => evaluate(arg, scope));
    if (found === undefined)
      return utilityType(name, args, fail) ?? GLOBALS[name] ?? fail(`there is no type ${name} here`);
    if ('own' in found) return OWN(found.own, args, fail) ?? fail(`${name} of gatefold has no JSON form`);
    if ('value' in found) return { kind: 'const', value: found.value };
    const { declarations, scope: home } = found;
    const [first] = declarations as [Declaration];
    const id = `${home.path}#${first.inside}${first.name}${args.length === 0 ? '' : `<${args.map(idOf).join()}>`}`;
    const known = named.get(id);
    if (known !== undefined) return known;
    if (named.size >= MOST_NAMED) fail('this type grows without end');
    const label = first.name === 'default' ? name : (first.inside + first.name).replaceAll('.', '_');
    const made: NamedShape = {
      kind: 'named',
      name: args.length === 0 ? label : `${label}_${args.map(nameOf).join('_')}`,
      id,
      notes: notesOf(declarations, home),
      target: once(
        () => declared(declarations, home, args),
        new CircularType(`${label} needs itself to be known`, scope.path, node.at),
      ),
    };
    named.set(id, made);
    return made;
  }

  function notesOf(declarations: readonly Declaration[], home: Scope): NamedShape['notes'] {
    const { doc, at } = declarations.find((one) => one.doc !== undefined) ?? (declarations[0] as Declaration);
    return doc === undefined ? NO_NOTES : readConstraints(doc, failAt(home, at)).notes;
  }

  function declared(declarations: readonly Declaration[], home: Scope, args: readonly Shape[]): Shape {
    const [first] = declarations as [Declaration];
    const fail = failAt(home, first.at);
    if (first.params.slice(args.length).some(({ fallback }) => fallback === undefined))
      fail(`${first.name} needs more type arguments`);
    const scope: Scope = { ...home, params: bind(first.params, args, home) };
    const { keywords } = readConstraints(first.doc, fail);
    if (first.kind === 'alias') return constrain(followed(evaluate(first.type as TypeNode, scope)), keywords, fail);
    for (const { doc, at } of declarations) refuseIdle(doc, failAt(home, at));
    if (first.kind === 'enum')
      return enumShape(declarations, home.module) ?? fail(`a value of the enum ${first.name} is no literal`);
    if (first.kind !== 'interface' && first.kind !== 'class') return fail(`${first.name} is a value and no type`);
    let base: RecordShape | undefined;
    for (const declaration of declarations) {
      for (const parent of declaration.parents) {
        const above = open(evaluate(parent, scope));
        const isAlone =
          declarations.length === 1 && declaration.parents.length === 1 && declaration.members.length === 0;
        if (isAlone && (above.kind === 'array' || above.kind === 'tuple')) return above;
        if (above.kind !== 'record') return fail(`${first.name} extends something that is no object`);
        const { index, byNumber } = above.index === undefined && base !== undefined ? base : above;
        base = { kind: 'record', props: new Map([...(base?.props ?? []), ...above.props]), index, byNumber };
      }
    }
    for (const { members } of declarations) base = record(members, scope, base);
    return base as RecordShape;
  }

  function bind(typeParams: readonly TypeParam[], args: readonly Shape[], home: Scope): ReadonlyMap<string, Shape> {
    const params = new Map(home.params);
    typeParams.forEach(({ name, constraint, fallback }, i) => {
      const type = fallback ?? constraint;
      const circular = () => new CircularType(`${name} needs itself to be known`, home.path, type?.at ?? 0);
      const byDefault = (): Shape =>
        // A type parameter may stand in its own constraint.
        type === undefined ? { kind: 'any' } : later(name, () => evaluate(type, { ...home, params }), circular());
      params.set(name, args[i] ?? byDefault());
    });
    return params;
  }

  function mapped(node: Extract<TypeNode, { kind: 'mapped' }>, scope: Scope, fail: Fail): Shape {
    const { keys: keysNode, optional } = node;
    const over = keysNode.kind === 'keyof' ? keysNode.of : undefined;
    const source = over && open(evaluate(over, scope));
    // Over a type parameter each part of a union is mapped by itself.
    if (source?.kind === 'union' && over?.kind === 'name' && scope.params.has(over.name)) {
      const withPart = (part: Shape): Scope => ({ ...scope, params: new Map(scope.params).set(over.name, part) });
      return unite(source.of.map((part) => (isStructure(open(part)) ? mapped(node, withPart(part), fail) : part)));
    }
    const keys = open(evaluate(keysNode, scope));
    const of = (key: Shape) => evaluate(node.of, { ...scope, params: new Map(scope.params).set(node.param, key) });
    if (keys.kind === 'string' || keys.kind === 'number') {
      return { kind: 'record', props: new Map(), index: of(keys), byNumber: keys.kind === 'number' };
    }
    const props = new Map<string, Prop>();
    for (const value of constants(keys, fail)) {
      const before = source?.kind === 'record' ? source.props.get(String(value)) : undefined;
      const type = of({ kind: 'const', value });
      props.set(String(value), {
        of: optional === '-?' ? without(type, 'undefined') : type,
        optional: optional === '' ? (before?.optional ?? false) : optional !== '-?',
        notes: before?.notes ?? NO_NOTES,
      });
    }
    return { kind: 'record', props, index: undefined };
  }

  function template(node: Extract<TypeNode, { kind: 'template' }>, scope: Scope, fail: Fail): Shape {
    const types = node.types.map((type) => evaluate(type, scope));
    return templateShape(node.texts, types, fail);
  }

  function typeOf(name: string, scope: Scope): Shape | undefined {
    const found = findValue(name, scope, load);
    if (found === undefined) return undefined;
    const { declaration, scope: home, rest } = found;
    refuseIdle(declaration.doc, failAt(home, declaration.at));
    return constantAt(
      declaration.type === undefined ? readConstant(declaration, home.module) : evaluate(declaration.type, home),
      rest,
    );
  }

  return { evaluate, bind, load };
}

function failAt({ path }: Scope, at: number): Fail {
  return (what, cure) => {
    throw new Unsupported(what, path, at, cure);
  };
}

function refuseIdle(doc: string | undefined, fail: Fail): void {
  const idle = idleIn(doc);
  if (idle !== undefined) fail(idle, '');
}

function readConstraints(doc: string | undefined, fail: Fail): ReturnType<typeof constraintsOf> {
  try {
    return constraintsOf(doc);
  } catch (error) {
    return fail((error as Error).message, '');
  }
}
