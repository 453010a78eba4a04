// Evaluates a type of the syntax tree to a shape, which is the meaning of the type (shape.ts). An unsupported type is
// an error with its place. look-up.ts finds the types that names mean, members.ts evaluates the fields of objects, and
// utility-types.ts computes `Partial`, `Pick` and their like.
import { CircularType, SCHEMA_CURE } from '../source/source-error.ts';
import type { Declaration, NameNode, TypeNode, TypeParam } from '../source/syntax.ts';
import { findType, findValue, pickConstant, readConstant, readEnum, type Scope } from './look-up.ts';
import { evaluateMembers, failAt, type MemberTools, readConstraintsOrFail, refuseStrayConstraint } from './members.ts';
import { constrain, intersect, isStructure } from './narrow.ts';
import {
  createLazy,
  excludeKinds,
  type Fail,
  idOf,
  listConstants,
  type NamedShape,
  NO_NOTES,
  nameOf,
  type Prop,
  type RecordShape,
  recordOf,
  refuseEndless,
  resolve,
  type Shape,
  type TupleShapeItem,
  unite,
} from './shape.ts';
import { templateShape } from './template.ts';
import { BUILTIN_SHAPES, GLOBAL_TYPES, gatefoldType, keysOf, propertyOf, utilityType } from './utility-types.ts';

export interface Evaluator {
  /** @throws Unsupported */
  evaluate(node: TypeNode, scope: Scope): Shape;
  /**
   * Gives each type parameter a shape: its argument, else its default, else its constraint, else `any`.
   *
   * @param ownScope the scope of the declaration that has the type parameters
   */
  bind(typeParams: readonly TypeParam[], args: readonly Shape[], ownScope: Scope): ReadonlyMap<string, Shape>;
}

/** Maximum number of named shapes. The limit ends a generic type that contains itself with ever longer arguments. */
const MAX_NAMED_SHAPES = 2000;

export function createEvaluator(): Evaluator {
  const namedShapes = new Map<string, NamedShape>();
  let deferredCount = 0;
  const tools: MemberTools = { evaluate, defer };

  function evaluate(node: TypeNode, scope: Scope): Shape {
    const fail = failAt(scope, node.at);
    switch (node.kind) {
      case 'word':
        return BUILTIN_SHAPES[node.name] ?? fail(`${node.name} has no JSON form`);
      case 'literal':
        return node.value === null ? { kind: 'null' } : { kind: 'const', value: node.value };
      case 'array':
        return { kind: 'array', element: evaluate(node.element, scope) };
      case 'readonly':
        return evaluate(node.operand, scope);
      case 'tuple':
        return evaluateTuple(node, scope, fail);
      case 'union':
        return unite(evaluateAll(node.parts, scope));
      case 'intersection':
        return evaluateAll(node.parts, scope).reduce((a, b) => intersect(a, b, fail));
      case 'object':
        return evaluateMembers(node.members, scope, tools);
      case 'keyof':
        return keysOf(evaluate(node.operand, scope), fail);
      case 'indexed':
        return propertyOf(evaluate(node.object, scope), evaluate(node.key, scope), fail);
      case 'typeof':
        return (
          evaluateTypeOf(node.name, scope) ?? fail(`the value ${node.name} is not a constant that can be read here`)
        );
      case 'template':
        return templateShape(node.texts, evaluateAll(node.types, scope), fail);
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

  function evaluateAll(nodes: readonly TypeNode[], scope: Scope): Shape[] {
    return nodes.map((node) => evaluate(node, scope));
  }

  function evaluateTuple(node: Extract<TypeNode, { kind: 'tuple' }>, scope: Scope, fail: Fail): Shape {
    const items: TupleShapeItem[] = [];
    let rest: Shape | undefined;
    for (const item of node.items) {
      const shape = evaluate(item.type, scope);
      if (rest !== undefined) fail('a tuple with elements after its rest is not understood');
      if (!item.isRest) {
        items.push({ shape, isOptional: item.isOptional });
        continue;
      }
      const spread = resolve(shape);
      if (spread.kind === 'array' && spread.keywords === undefined) rest = spread.element;
      else if (spread.kind === 'tuple' && spread.rest === undefined) items.push(...spread.items);
      else fail('this rest of a tuple is not understood');
    }
    return { kind: 'tuple', items, rest };
  }

  function defer(name: string, createShape: () => Shape, circularError: CircularType): NamedShape {
    const target = createLazy(createShape, circularError);
    return { kind: 'named', name, id: `later ${++deferredCount}`, notes: NO_NOTES, target };
  }

  function evaluateName(node: NameNode, scope: Scope, fail: Fail): Shape {
    const { name } = node;
    const param = node.from === undefined ? scope.typeParams.get(name) : undefined;
    if (param !== undefined) return param;
    const target = findType(node, scope);
    if (target === 'package') return fail(`${name} comes from a package, whose types are not read`, SCHEMA_CURE);
    if (target !== undefined && 'missingFile' in target)
      return fail(`${name} is imported from ${target.missingFile}, where no .ts or .js file is found`);
    const args = evaluateAll(node.args, scope);
    if (target === undefined)
      return utilityType(name, args, fail) ?? GLOBAL_TYPES[name] ?? fail(`there is no type ${name} here`);
    if ('gatefoldName' in target)
      return gatefoldType(target.gatefoldName, args, fail) ?? fail(`${name} of gatefold has no JSON form`);
    if ('enumValue' in target) return { kind: 'const', value: target.enumValue };
    const { declarations, scope: ownScope } = target;
    const [first] = declarations as [Declaration];
    const id = `${ownScope.path}#${first.namespace}${first.name}${args.length === 0 ? '' : `<${args.map(idOf).join()}>`}`;
    const cached = namedShapes.get(id);
    if (cached !== undefined) return cached;
    if (namedShapes.size >= MAX_NAMED_SHAPES) fail('this type grows without end');
    const typeName = first.name === 'default' ? name : (first.namespace + first.name).replaceAll('.', '_');
    const shape: NamedShape = {
      kind: 'named',
      name: args.length === 0 ? typeName : `${typeName}_${args.map(nameOf).join('_')}`,
      id,
      notes: readNotes(declarations, ownScope),
      target: createLazy(
        () => evaluateDeclarations(declarations, ownScope, args),
        new CircularType(`${typeName} depends on itself`, scope.path, node.at),
      ),
    };
    namedShapes.set(id, shape);
    return shape;
  }

  function readNotes(declarations: readonly Declaration[], ownScope: Scope): NamedShape['notes'] {
    const { doc, at } =
      declarations.find((declaration) => declaration.doc !== undefined) ?? (declarations[0] as Declaration);
    return doc === undefined ? NO_NOTES : readConstraintsOrFail(doc, failAt(ownScope, at)).notes;
  }

  function evaluateDeclarations(declarations: readonly Declaration[], ownScope: Scope, args: readonly Shape[]): Shape {
    const [first] = declarations as [Declaration];
    const fail = failAt(ownScope, first.at);
    if (first.typeParams.slice(args.length).some(({ fallback }) => fallback === undefined))
      fail(`${first.name} needs more type arguments`);
    const scope: Scope = { ...ownScope, typeParams: bind(first.typeParams, args, ownScope) };
    const { keywords } = readConstraintsOrFail(first.doc, fail);
    if (first.kind === 'alias')
      return constrain(refuseEndless(evaluate(first.type as TypeNode, scope)), keywords, fail);
    for (const { doc, at } of declarations) refuseStrayConstraint(doc, failAt(ownScope, at));
    if (first.kind === 'enum')
      return readEnum(declarations, ownScope.module) ?? fail(`a value of the enum ${first.name} is not a literal`);
    if (first.kind !== 'interface' && first.kind !== 'class') return fail(`${first.name} is a value and not a type`);
    let base: RecordShape | undefined;
    for (const declaration of declarations) {
      for (const node of declaration.parents) {
        const parent = resolve(evaluate(node, scope));
        const isOnlyParent =
          declarations.length === 1 && declaration.parents.length === 1 && declaration.members.length === 0;
        if (isOnlyParent && (parent.kind === 'array' || parent.kind === 'tuple')) return parent;
        if (parent.kind !== 'record') return fail(`${first.name} extends something that is not an object`);
        const { index, isNumberIndex } = parent.index === undefined && base !== undefined ? base : parent;
        base = { kind: 'record', props: new Map([...(base?.props ?? []), ...parent.props]), index, isNumberIndex };
      }
    }
    for (const { members } of declarations) base = evaluateMembers(members, scope, tools, base);
    return base as RecordShape;
  }

  function bind(typeParams: readonly TypeParam[], args: readonly Shape[], ownScope: Scope): ReadonlyMap<string, Shape> {
    const shapes = new Map(ownScope.typeParams);
    typeParams.forEach(({ name, constraint, fallback }, i) => {
      const type = fallback ?? constraint;
      const createDefault = (): Shape => {
        if (type === undefined) return { kind: 'any' };
        const circularError = new CircularType(`${name} depends on itself`, ownScope.path, type.at);
        // In `T extends Node<T>`, the constraint needs the shape of `T`, so the constraint is evaluated later.
        return defer(name, () => evaluate(type, { ...ownScope, typeParams: shapes }), circularError);
      };
      shapes.set(name, args[i] ?? createDefault());
    });
    return shapes;
  }

  function evaluateMapped(node: Extract<TypeNode, { kind: 'mapped' }>, scope: Scope, fail: Fail): Shape {
    const { keys: keysNode, optionalSign } = node;
    const mappedType = keysNode.kind === 'keyof' ? keysNode.operand : undefined;
    const mapped = mappedType && resolve(evaluate(mappedType, scope));
    // As in TypeScript, `{ [K in keyof T]: … }` over a type parameter `T` maps each part of a union separately.
    if (mapped?.kind === 'union' && mappedType?.kind === 'name' && scope.typeParams.has(mappedType.name)) {
      const withPart = (part: Shape): Scope => ({
        ...scope,
        typeParams: new Map(scope.typeParams).set(mappedType.name, part),
      });
      return unite(
        mapped.parts.map((part) => (isStructure(resolve(part)) ? evaluateMapped(node, withPart(part), fail) : part)),
      );
    }
    const keys = resolve(evaluate(keysNode, scope));
    const evaluateValue = (key: Shape) =>
      evaluate(node.value, { ...scope, typeParams: new Map(scope.typeParams).set(node.param, key) });
    if (keys.kind === 'string' || keys.kind === 'number') {
      return { kind: 'record', props: new Map(), index: evaluateValue(keys), isNumberIndex: keys.kind === 'number' };
    }
    const props = new Map<string, Prop>();
    for (const value of listConstants(keys, fail)) {
      const sourceProp = mapped?.kind === 'record' ? mapped.props.get(String(value)) : undefined;
      const type = evaluateValue({ kind: 'const', value });
      props.set(String(value), {
        shape: optionalSign === '-?' ? excludeKinds(type, 'undefined') : type,
        isOptional: optionalSign === '' ? (sourceProp?.isOptional ?? false) : optionalSign !== '-?',
        notes: sourceProp?.notes ?? NO_NOTES,
      });
    }
    return recordOf(props);
  }

  function evaluateTypeOf(name: string, scope: Scope): Shape | undefined {
    const target = findValue(name, scope);
    if (target === undefined || target === 'package' || target.declaration === undefined) return undefined;
    const { declaration, scope: ownScope, keys } = target;
    refuseStrayConstraint(declaration.doc, failAt(ownScope, declaration.at));
    const { type } = declaration;
    return pickConstant(type ? evaluate(type, ownScope) : readConstant(declaration, ownScope.module), keys);
  }

  return { evaluate, bind };
}
