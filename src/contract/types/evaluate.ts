// From types as they are written to what they mean: shapes. Names are looked up by look-up.ts, utility types are worked
// out by utility-types.ts; whatever is not understood throws Unsupported, with its place.
import { type Constraints, findUnreadConstraint, readConstraints } from '../source/constraint-tags.ts';
import { CircularType, Unsupported } from '../source/source-error.ts';
import type { Declaration, Member, Module, NameNode, TypeNode, TypeParam } from '../source/syntax.ts';
import { findType, findValue, pickConstant, readConstant, readEnum, readMemberKey, type Scope } from './look-up.ts';
import { constrain, intersect, isStructure } from './narrow.ts';
import {
  createLazy,
  excludeKinds,
  type Fail,
  failingShape,
  idOf,
  listConstants,
  type NamedShape,
  NO_NOTES,
  nameOf,
  type Prop,
  type RecordShape,
  refuseEndless,
  resolve,
  type Shape,
  type TupleShapeItem,
  unite,
} from './shape.ts';
import { templateShape } from './template.ts';
import { builtinShape, GLOBAL_TYPES, gatefoldType, keysOf, propertyOf, utilityType } from './utility-types.ts';

/** @returns the own file that is meant. `package`: it has no source here. Undefined: nothing is found */
export type Loader = (from: string, specifier: string) => { path: string; module: Module } | 'package' | undefined;

export interface Evaluator {
  /** @throws Unsupported */
  evaluate(node: TypeNode, scope: Scope): Shape;
  /** The shapes of type parameters: the argument, the default, the constraint, or anything. */
  bind(params: readonly TypeParam[], args: readonly Shape[], home: Scope): ReadonlyMap<string, Shape>;
  readonly load: Loader;
}

const MAX_NAMED = 2000;

export function createEvaluator(load: Loader): Evaluator {
  const namedShapes = new Map<string, NamedShape>();
  let deferredCount = 0;

  function evaluate(node: TypeNode, scope: Scope): Shape {
    const fail = failAt(scope, node.at);
    switch (node.kind) {
      case 'word':
        return builtinShape(node.name) ?? fail(`${node.name} has no JSON form`);
      case 'literal':
        return node.value === null ? { kind: 'null' } : { kind: 'const', value: node.value };
      case 'array':
        return { kind: 'array', element: evaluate(node.element, scope) };
      case 'readonly':
        return evaluate(node.operand, scope);
      case 'tuple':
        return evaluateTuple(node, scope, fail);
      case 'union':
        return unite(node.parts.map((part) => evaluate(part, scope)));
      case 'intersection':
        return node.parts.map((part) => evaluate(part, scope)).reduce((a, b) => intersect(a, b, fail));
      case 'object':
        return evaluateMembers(node.members, scope);
      case 'keyof':
        return keysOf(evaluate(node.operand, scope), fail);
      case 'indexed':
        return propertyOf(evaluate(node.object, scope), evaluate(node.key, scope), fail);
      case 'typeof':
        return evaluateTypeOf(node.name, scope) ?? fail(`the value ${node.name} is no constant that can be read here`);
      case 'template':
        return evaluateTemplate(node, scope, fail);
      case 'mapped':
        return evaluateMapped(node, scope, fail);
      case 'name':
        return evaluateName(node, scope, fail);
      case 'unsupported':
        return fail(`${node.form} is not understood`);
      case 'mistake':
        return fail(node.message, '');
    }
  }

  function evaluateTuple(node: Extract<TypeNode, { kind: 'tuple' }>, scope: Scope, fail: Fail): Shape {
    const items: TupleShapeItem[] = [];
    let rest: Shape | undefined;
    for (const item of node.items) {
      const shape = evaluate(item.type, scope);
      if (rest !== undefined) fail('a tuple with something behind its rest is not understood');
      if (!item.rest) {
        items.push({ shape, optional: item.optional });
        continue;
      }
      const spread = resolve(shape);
      if (spread.kind === 'array' && spread.keywords === undefined) rest = spread.element;
      else if (spread.kind === 'tuple' && spread.rest === undefined) items.push(...spread.items);
      else fail('this rest of a tuple is not understood');
    }
    return { kind: 'tuple', items, rest };
  }

  function evaluateMembers(members: readonly Member[], scope: Scope, base?: RecordShape): RecordShape {
    const props = new Map(base?.props);
    let { index, byNumber } = base ?? { index: undefined };
    for (const member of members) {
      const { kind, name, type, modifiers, at } = member;
      const fail = failAt(scope, at);
      if (member.params.some(({ declaresField }) => declaresField))
        fail('a class whose constructor declares fields is not understood');
      if (modifiers.includes('static') || (kind === 'method' && name === 'constructor')) {
        refuseStrayConstraint(member.doc, fail);
        continue;
      }
      if (name.startsWith('#') || modifiers.some((word) => word === 'private' || word === 'protected')) {
        fail('a class with private members is no plain object');
      }
      if (kind === 'index') {
        const key = resolve(evaluate(member.params[0]?.type as TypeNode, scope));
        const isPlain = (key.kind === 'string' || key.kind === 'number') && key.keywords === undefined;
        if (!isPlain) fail('this kind of key is not understood');
        if (index !== undefined && byNumber !== (key.kind === 'number'))
          fail('index signatures by string and by number together are not understood');
        byNumber = key.kind === 'number';
        index = constrainField(member, evaluate(type as TypeNode, scope), fail).shape;
        continue;
      }
      const key = readMemberKey(member, scope, load);
      if (key === undefined || kind === 'other')
        fail('a computed member or a signature without a name has no JSON form');
      else if (key === '__proto__') fail('a field __proto__ is not taken');
      // A field whose key is a symbol is a brand: no JSON has it.
      else if (key !== '') props.set(key, evaluateFieldSafely(member, key, scope, fail));
    }
    const isOpen = base === undefined && members.length === 0;
    return { kind: 'record', props, index, byNumber, ...(isOpen ? { open: true } : {}) };
  }

  function evaluateField(member: Member, name: string, scope: Scope, fail: Fail): Prop {
    if (member.kind !== 'property') return fail(`${name} is a method or an accessor, and has no JSON form`);
    if (member.type === undefined) return fail(`the field ${name} has no type`);
    return constrainField(member, evaluate(member.type, scope), fail);
  }

  /**
   * A field that is not understood is an error only where it is needed. One that is being worked out is asked for
   * later.
   */
  function evaluateFieldSafely(member: Member, name: string, scope: Scope, fail: Fail): Prop {
    try {
      return evaluateField(member, name, scope, fail);
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error;
      const isCircular = error instanceof CircularType;
      const notes = member.doc === undefined ? NO_NOTES : readConstraintsOrFail(member.doc, fail).notes;
      const shape = isCircular
        ? defer(name, () => refuseEndless(evaluateField(member, name, scope, fail).shape), error)
        : failingShape(error);
      return { shape, optional: member.optional, notes };
    }
  }

  function defer(name: string, work: () => Shape, circular: CircularType): NamedShape {
    return { kind: 'named', name, id: `later ${++deferredCount}`, notes: NO_NOTES, target: createLazy(work, circular) };
  }

  function constrainField({ doc, optional }: Member, shape: Shape, fail: Fail): Prop {
    if (doc === undefined) return { shape, optional, notes: NO_NOTES };
    const { keywords, notes } = readConstraintsOrFail(doc, fail);
    return { shape: constrain(shape, keywords, fail), optional, notes };
  }

  function evaluateName(node: NameNode, scope: Scope, fail: Fail): Shape {
    const { name } = node;
    const param = node.from === undefined ? scope.typeParams.get(name) : undefined;
    if (param !== undefined) return param;
    const found = findType(node, scope, load);
    if (found === 'package') return fail(`${name} comes from a package, whose types are not read`);
    if (found !== undefined && 'missingFile' in found)
      return fail(`${name} is imported from ${found.missingFile}, which is not found`);
    const args = node.args.map((arg) => evaluate(arg, scope));
    if (found === undefined)
      return utilityType(name, args, fail) ?? GLOBAL_TYPES[name] ?? fail(`there is no type ${name} here`);
    if ('gatefoldName' in found)
      return gatefoldType(found.gatefoldName, args, fail) ?? fail(`${name} of gatefold has no JSON form`);
    if ('enumValue' in found) return { kind: 'const', value: found.enumValue };
    const { declarations, scope: home } = found;
    const [first] = declarations as [Declaration];
    const id = `${home.path}#${first.namespace}${first.name}${args.length === 0 ? '' : `<${args.map(idOf).join()}>`}`;
    const cached = namedShapes.get(id);
    if (cached !== undefined) return cached;
    if (namedShapes.size >= MAX_NAMED) fail('this type grows without end');
    const label = first.name === 'default' ? name : (first.namespace + first.name).replaceAll('.', '_');
    const shape: NamedShape = {
      kind: 'named',
      name: args.length === 0 ? label : `${label}_${args.map(nameOf).join('_')}`,
      id,
      notes: readNotes(declarations, home),
      target: createLazy(
        () => evaluateDeclarations(declarations, home, args),
        new CircularType(`${label} needs itself to be known`, scope.path, node.at),
      ),
    };
    namedShapes.set(id, shape);
    return shape;
  }

  function readNotes(declarations: readonly Declaration[], home: Scope): NamedShape['notes'] {
    const { doc, at } = declarations.find((one) => one.doc !== undefined) ?? (declarations[0] as Declaration);
    return doc === undefined ? NO_NOTES : readConstraintsOrFail(doc, failAt(home, at)).notes;
  }

  function evaluateDeclarations(declarations: readonly Declaration[], home: Scope, args: readonly Shape[]): Shape {
    const [first] = declarations as [Declaration];
    const fail = failAt(home, first.at);
    if (first.typeParams.slice(args.length).some(({ fallback }) => fallback === undefined))
      fail(`${first.name} needs more type arguments`);
    const scope: Scope = { ...home, typeParams: bind(first.typeParams, args, home) };
    const { keywords } = readConstraintsOrFail(first.doc, fail);
    if (first.kind === 'alias')
      return constrain(refuseEndless(evaluate(first.type as TypeNode, scope)), keywords, fail);
    for (const { doc, at } of declarations) refuseStrayConstraint(doc, failAt(home, at));
    if (first.kind === 'enum')
      return readEnum(declarations, home.module) ?? fail(`a value of the enum ${first.name} is no literal`);
    if (first.kind !== 'interface' && first.kind !== 'class') return fail(`${first.name} is a value and no type`);
    let base: RecordShape | undefined;
    for (const declaration of declarations) {
      for (const node of declaration.parents) {
        const parent = resolve(evaluate(node, scope));
        const isAlone =
          declarations.length === 1 && declaration.parents.length === 1 && declaration.members.length === 0;
        if (isAlone && (parent.kind === 'array' || parent.kind === 'tuple')) return parent;
        if (parent.kind !== 'record') return fail(`${first.name} extends something that is no object`);
        const { index, byNumber } = parent.index === undefined && base !== undefined ? base : parent;
        base = { kind: 'record', props: new Map([...(base?.props ?? []), ...parent.props]), index, byNumber };
      }
    }
    for (const { members } of declarations) base = evaluateMembers(members, scope, base);
    return base as RecordShape;
  }

  function bind(typeParams: readonly TypeParam[], args: readonly Shape[], home: Scope): ReadonlyMap<string, Shape> {
    const params = new Map(home.typeParams);
    typeParams.forEach(({ name, constraint, fallback }, i) => {
      const type = fallback ?? constraint;
      const circular = () => new CircularType(`${name} needs itself to be known`, home.path, type?.at ?? 0);
      const byDefault = (): Shape =>
        // A type parameter may stand in its own constraint.
        type === undefined
          ? { kind: 'any' }
          : defer(name, () => evaluate(type, { ...home, typeParams: params }), circular());
      params.set(name, args[i] ?? byDefault());
    });
    return params;
  }

  function evaluateMapped(node: Extract<TypeNode, { kind: 'mapped' }>, scope: Scope, fail: Fail): Shape {
    const { keys: keysNode, optional } = node;
    const mappedType = keysNode.kind === 'keyof' ? keysNode.operand : undefined;
    const source = mappedType && resolve(evaluate(mappedType, scope));
    // Over a type parameter each part of a union is mapped by itself.
    if (source?.kind === 'union' && mappedType?.kind === 'name' && scope.typeParams.has(mappedType.name)) {
      const withPart = (part: Shape): Scope => ({
        ...scope,
        typeParams: new Map(scope.typeParams).set(mappedType.name, part),
      });
      return unite(
        source.parts.map((part) => (isStructure(resolve(part)) ? evaluateMapped(node, withPart(part), fail) : part)),
      );
    }
    const keys = resolve(evaluate(keysNode, scope));
    const evaluateValue = (key: Shape) =>
      evaluate(node.value, { ...scope, typeParams: new Map(scope.typeParams).set(node.param, key) });
    if (keys.kind === 'string' || keys.kind === 'number') {
      return { kind: 'record', props: new Map(), index: evaluateValue(keys), byNumber: keys.kind === 'number' };
    }
    const props = new Map<string, Prop>();
    for (const value of listConstants(keys, fail)) {
      const sourceProp = source?.kind === 'record' ? source.props.get(String(value)) : undefined;
      const type = evaluateValue({ kind: 'const', value });
      props.set(String(value), {
        shape: optional === '-?' ? excludeKinds(type, 'undefined') : type,
        optional: optional === '' ? (sourceProp?.optional ?? false) : optional !== '-?',
        notes: sourceProp?.notes ?? NO_NOTES,
      });
    }
    return { kind: 'record', props, index: undefined };
  }

  function evaluateTemplate(node: Extract<TypeNode, { kind: 'template' }>, scope: Scope, fail: Fail): Shape {
    const types = node.types.map((type) => evaluate(type, scope));
    return templateShape(node.texts, types, fail);
  }

  function evaluateTypeOf(name: string, scope: Scope): Shape | undefined {
    const found = findValue(name, scope, load);
    if (found === undefined) return undefined;
    const { declaration, scope: home, keys } = found;
    refuseStrayConstraint(declaration.doc, failAt(home, declaration.at));
    return pickConstant(
      declaration.type === undefined ? readConstant(declaration, home.module) : evaluate(declaration.type, home),
      keys,
    );
  }

  return { evaluate, bind, load };
}

function failAt({ path }: Scope, at: number): Fail {
  return (what, cure) => {
    throw new Unsupported(what, path, at, cure);
  };
}

function refuseStrayConstraint(doc: string | undefined, fail: Fail): void {
  const idle = findUnreadConstraint(doc);
  if (idle !== undefined) fail(idle, '');
}

function readConstraintsOrFail(doc: string | undefined, fail: Fail): Constraints {
  try {
    return readConstraints(doc);
  } catch (error) {
    return fail((error as Error).message, '');
  }
}
