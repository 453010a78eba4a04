// Evaluates a type of the syntax tree to a shape. The error of an unsupported type has its place. look-up.ts finds the
// types that names mean, members.ts evaluates the fields of objects, and utility-types.ts computes `Partial` and such.
import type { MadeTypes, TypeInPlace } from '../made-types.ts';
import { CircularType, readOr, Unsupported, WRITE_OUT } from '../source/source-error.ts';
import type { Declaration, NameNode, TypeNode, TypeParam } from '../source/syntax.ts';
import { failForMissing, failForPackage, failForUnread, tableCure } from './advice.ts';
import { inferredField, inferredType, schemaOf } from './inferred.ts';
import { findType, findValue, readConstant, readEnum, type Scope, shapeAt } from './look-up.ts';
import { evaluateMapped } from './mapped.ts';
import { evaluateMembers, failAt, type MemberTools, readConstraintsOrFail, refuseStrayConstraint } from './members.ts';
import { constrain, intersect, intersectIndexes } from './narrow.ts';
import {
  createLazy,
  type Fail,
  failingShape,
  idOf,
  type NamedShape,
  NO_NOTES,
  nameOf,
  type RecordShape,
  refuseEndless,
  resolve,
  type Shape,
  type TupleShapeItem,
  unite,
  withFallback,
} from './shape.ts';
import { templateShape } from './template.ts';
import { BUILTIN_SHAPES, gatefoldType, globalType, keysOf, nodeType, propertyOf } from './utility-types.ts';

export type Evaluator = ReturnType<typeof createEvaluator>;

/** Leaves out the parts of a union that no request can have, such as a bigint. A union only of those is an error. */
function withJsonForm(parts: readonly TypeNode[]): readonly TypeNode[] {
  const kept = parts.filter(
    (part) =>
      !(part.kind === 'word' && /^(?:bigint|symbol)$/.test(part.name)) &&
      !(part.kind === 'unsupported' && /^a (?:function|bigint)$/.test(part.form)),
  );
  const isEmpty = (part: TypeNode) =>
    (part.kind === 'word' && part.name === 'undefined') || (part.kind === 'literal' && part.value === null);
  return kept.every(isEmpty) ? parts : kept;
}

/** Maximum number of named shapes. The limit ends a type such as `interface G<T> { a?: G<T[]> }`. */
const MAX_NAMED_SHAPES = 2000;

/** @param made finds the types that TypeScript has written out for refused ones (made-types.ts) */
export function createEvaluator(made?: Pick<MadeTypes, 'find' | 'findFresh'>) {
  const namedShapes = new Map<string, NamedShape>();
  let deferredCount = 0;
  const tools: MemberTools = { evaluate, defer, addWanted };
  /**
   * The innermost type around the one that is evaluated that is the same for all type arguments. TypeScript is asked
   * for a type in its place, so it can be asked for this one.
   */
  let closed: TypeInPlace | undefined;

  function evaluate(node: TypeNode, scope: Scope): Shape {
    if (made === undefined || scope.typeParams.size > 0) return evaluateNode(node, scope);
    const useMade = (error: unknown): Shape => {
      const found = made.find(error, node, scope);
      return evaluateNode(found.node, found.scope);
    };
    return evaluateInside({ node, scope }, () => {
      try {
        const fresh = made.findFresh(node, scope);
        if (fresh !== undefined) return evaluateNode(fresh.node, fresh.scope);
        const shape = evaluateNode(node, scope);
        const isNamed = node.kind === 'name' && shape.kind === 'named';
        return isNamed && shape.inferredFrom === undefined ? withFallback(shape, useMade) : shape;
      } catch (error) {
        return useMade(error);
      }
    });
  }

  function evaluateInside(place: TypeInPlace | undefined, createShape: () => Shape): Shape {
    const outer = closed;
    closed = place;
    try {
      return createShape();
    } catch (error) {
      throw error instanceof Unsupported ? addWanted(error) : error;
    } finally {
      closed = outer;
    }
  }

  function evaluateNode(node: TypeNode, scope: Scope): Shape {
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
        return unite(evaluateAll(withJsonForm(node.parts), scope));
      case 'intersection':
        return evaluateAll(node.parts, scope).reduce((a, b) => intersect(a, b, fail));
      case 'object':
        return evaluateMembers(node.members, scope, tools);
      case 'keyof':
        return keysOf(evaluate(node.operand, scope), fail);
      case 'indexed':
        // `A['b']['c']` begins where `A['b']` does, so the place can mean the whole alone.
        return propertyOf(
          node.object.kind === 'indexed' ? evaluateNode(node.object, scope) : evaluate(node.object, scope),
          evaluate(node.key, scope),
          fail,
        );
      case 'typeof':
        return evaluateTypeOf(node, scope, fail);
      case 'template':
        return templateShape(node.texts, evaluateAll(node.types, scope), fail);
      case 'mapped':
        return evaluateMapped(node, scope, tools);
      case 'name':
        return evaluateName(node, scope, fail);
      case 'unsupported':
        // TypeScript writes out only the forms whose cure says so.
        return fail(`${node.form} is not understood`, node.cure ?? 'write the type out');
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

  /** Returns an error with the type that TypeScript can write out in its place, or with the reason of a stale one. */
  function addWanted(error: Unsupported): Unsupported {
    if (made === undefined || closed === undefined || error.wanted !== undefined) return error;
    try {
      made.find(error, closed.node, closed.scope);
    } catch (found) {
      if (found instanceof Unsupported) return found;
    }
    return error;
  }

  function evaluateLater(createShape: () => Shape, circularError: CircularType): () => Shape {
    const place = closed;
    return createLazy(() => evaluateInside(place, createShape), circularError);
  }

  function defer(name: string, createShape: () => Shape, circularError: CircularType): NamedShape {
    const target = evaluateLater(createShape, circularError);
    return { kind: 'named', name, id: `later ${++deferredCount}`, notes: NO_NOTES, target };
  }

  function evaluateName(node: NameNode, scope: Scope, fail: Fail): Shape {
    const { name } = node;
    const param = scope.typeParams.get(name);
    if (param !== undefined) return param;
    const target = findType(name, scope);
    if (target !== undefined && 'packageName' in target)
      return nodeType(target) ?? inferredType(node, target, scope, fail) ?? failForPackage(name, target, scope, fail);
    if (target !== undefined && 'unread' in target) return failForUnread(node, target, scope);
    // The status of a `Reply` is known, even if the type of its body is not read.
    const isReply = target !== undefined && 'gatefoldName' in target && target.gatefoldName === 'Reply';
    const evaluateArg = (arg: TypeNode) => evaluate(arg, scope);
    const args = node.args.map((arg) => (isReply ? readOr(() => evaluateArg(arg), failingShape) : evaluateArg(arg)));
    if (target === undefined) {
      // An imported name that no file exports is an error, even if it is `Date` or the name of another global type.
      const from = scope.module.imports.get(name)?.from;
      return (from === undefined ? globalType(name, args, fail) : undefined) ?? failForMissing(name, from, fail);
    }
    if ('gatefoldName' in target)
      return gatefoldType(target.gatefoldName, args, fail) ?? fail(`${name} of gatefold has no JSON form`);
    if ('enumValue' in target) return { kind: 'const', value: target.enumValue };
    const { declarations, scope: targetScope } = target;
    const [first] = declarations as [Declaration];
    const id = `${targetScope.path}#${first.name}${args.length === 0 ? '' : `<${args.map(idOf).join()}>`}`;
    const cached = namedShapes.get(id);
    if (cached !== undefined) return cached;
    if (namedShapes.size >= MAX_NAMED_SHAPES) fail('this type grows without end');
    // A default export without a name gets the name under which it is imported.
    const typeName = first.name === 'default' ? name : first.name;
    const nameWithArgs = args.length === 0 ? typeName : `${typeName}_${args.map(nameOf).join('_')}`;
    const circularError = new CircularType(`${typeName} depends on itself`, scope.path, node.at);
    const evaluateOnce = evaluateLater(() => evaluateDeclarations(declarations, targetScope, args), circularError);
    const notes = readNotes(declarations, targetScope);
    const shape: NamedShape = { kind: 'named', name: nameWithArgs, id, notes, target: evaluateOnce };
    namedShapes.set(id, shape);
    return shape;
  }

  function readNotes(declarations: readonly Declaration[], scope: Scope): NamedShape['notes'] {
    const withDoc = declarations.find(({ doc }) => doc !== undefined);
    return withDoc === undefined ? NO_NOTES : readConstraintsOrFail(withDoc.doc, failAt(scope, withDoc.at)).notes;
  }

  /** @param declarations those of one name. An interface can have several */
  function evaluateDeclarations(declarations: readonly Declaration[], outer: Scope, args: readonly Shape[]): Shape {
    const [first] = declarations as [Declaration];
    const fail = failAt(outer, first.at);
    if (first.typeParams.slice(args.length).some(({ fallback }) => fallback === undefined))
      fail(`${first.name} needs more type arguments`);
    const scope: Scope = { ...outer, typeParams: bind(first.typeParams, args, outer), body: first.type };
    const { keywords } = readConstraintsOrFail(first.doc, fail);
    if (first.kind === 'alias') {
      const shape = evaluate(first.type as TypeNode, scope);
      return Object.keys(keywords).length === 0 && schemaOf(shape) !== undefined
        ? shape
        : constrain(refuseEndless(shape), keywords, fail);
    }
    for (const { doc, at } of declarations) refuseStrayConstraint(doc, failAt(outer, at));
    if (first.kind === 'enum')
      return (
        readEnum(declarations, outer.module) ?? fail(`a value of the enum ${first.name} is not a literal`, WRITE_OUT)
      );
    let base: RecordShape | undefined;
    for (const { parents, members } of declarations) {
      for (const node of parents) {
        const parent = resolve(evaluate(node, scope));
        // `interface Tags extends Array<string> {}` is a list.
        const isOnlyParent = declarations.length === 1 && parents.length === 1 && members.length === 0;
        if (isOnlyParent && (parent.kind === 'array' || parent.kind === 'tuple')) return parent;
        if (parent.kind !== 'record') return fail(`${first.name} extends something that is not an object`);
        const { index, isNumberIndex } = base === undefined ? parent : intersectIndexes(base, parent, fail);
        base = { kind: 'record', props: new Map([...(base?.props ?? []), ...parent.props]), index, isNumberIndex };
      }
    }
    for (const { members } of declarations) base = evaluateMembers(members, scope, tools, base);
    return base as RecordShape;
  }

  /** Adds type parameters to those of a scope: each with its argument, its default, its constraint or `any`. */
  function bind(typeParams: readonly TypeParam[], args: readonly Shape[], scope: Scope): ReadonlyMap<string, Shape> {
    const shapes = new Map(scope.typeParams);
    typeParams.forEach(({ name, constraint, fallback }, i) => {
      const createDefault = (type = fallback ?? constraint): Shape => {
        if (type === undefined) return { kind: 'any' };
        const circularError = new CircularType(`${name} depends on itself`, scope.path, type.at);
        // In `T extends Node<T>`, the constraint needs the shape of `T`, so it cannot be evaluated before `T` is set.
        return defer(name, () => evaluate(type, { ...scope, typeParams: shapes }), circularError);
      };
      shapes.set(name, args[i] ?? createDefault());
      // For `K extends keyof T`, the key `keyof K` leads to `T`. No parameter has such a name. TypeScript computes
      // `keyof User` of a type that is known at once, and then `K` leads nowhere.
      const operand = constraint?.kind === 'keyof' && constraint.operand.kind === 'name' ? constraint.operand.name : '';
      shapes.set(`keyof ${name}`, shapes.get(operand) ?? { kind: 'never' });
    });
    return shapes;
  }

  function evaluateTypeOf({ name, at }: { name: string; at: number }, scope: Scope, fail: Fail): Shape {
    const message = `the value ${name} is not a constant of literals, declared here or imported from the file that declares it`;
    const [head, ...keys] = name.split('.') as [string, ...string[]];
    if (scope.params?.has(head)) fail(`in this signature, typeof ${head} means the parameter ${head}`);
    const inferred = () => inferredField(name, at, scope, fail) ?? fail(message, tableCure(name));
    const target = findValue(head, scope, 'type');
    if (target === undefined || target === 'package') return inferred();
    const { declaration, scope: targetScope } = target;
    refuseStrayConstraint(declaration.doc, failAt(targetScope, declaration.at));
    const { type } = declaration;
    const shape = type ? evaluate(type, targetScope) : readConstant(declaration, targetScope.module);
    return shapeAt(shape, keys) ?? inferred();
  }

  return { evaluate, bind };
}
