// Evaluates mapped types: `{ [K in keyof T]?: T[K] }`.
import { CircularType } from '../source/source-error.ts';
import type { TypeNode } from '../source/syntax.ts';
import { type Scope, withParam } from './look-up.ts';
import { failAt, type MemberTools } from './members.ts';
import { hasStructure } from './narrow.ts';
import {
  excludeKinds,
  listConstants,
  NO_NOTES,
  nameOf,
  type Prop,
  propsOf,
  recordOf,
  resolve,
  type Shape,
  UNREAD_KEY,
  unite,
} from './shape.ts';

export function evaluateMapped(node: Extract<TypeNode, { kind: 'mapped' }>, scope: Scope, tools: MemberTools): Shape {
  const { keys: keysNode, optionalSign } = node;
  const { evaluate } = tools;
  const fail = failAt(scope, node.at);
  /** `T` in `{ [K in keyof T]: … }`. A field of the result is optional if the field of `T` is. */
  const sourceNode = keysNode.kind === 'keyof' ? keysNode.operand : undefined;
  const sourceShape = sourceNode && evaluate(sourceNode, scope);
  const source = sourceShape && resolve(sourceShape);
  // As in TypeScript, each part of a union, a list and a scalar are mapped in another way if `T` is a type parameter.
  if (source !== undefined && sourceNode?.kind === 'name' && scope.typeParams.has(sourceNode.name)) {
    const mapAs = (part: Shape) => evaluateMapped(node, withParam(scope, sourceNode.name, part), tools);
    // A part can be the name of another union, whose parts are mapped then.
    if (source.kind === 'union') return unite(source.parts.map((part) => (hasStructure(part) ? mapAs(part) : part)));
    if (source.kind === 'array') return { ...source, element: evaluateValue({ kind: 'number' }) };
    if (source.kind === 'tuple') return mapTuple(source, mapAs);
    if (source.kind === 'any') return { ...recordOf([]), isOpen: true };
    if (source.kind !== 'record' || source.isOpen) return sourceShape as Shape;
  }
  const keys = resolve(evaluate(keysNode, scope));
  // The fields of `T`, too, for `type A<T, K extends keyof T> = { [P in K]: … }`.
  const isBody = node === scope.body && keysNode.kind === 'name';
  const likeProps = propsOf((isBody ? scope.typeParams.get(`keyof ${keysNode.name}`) : undefined) ?? source);
  const isIndexSignature = keys.kind === 'string' || keys.kind === 'number';
  if (isIndexSignature && keys.keywords !== undefined) fail(...UNREAD_KEY);
  const props = new Map<string, Prop>();
  // For `T = { [key: string]: unknown; a: number }`, `keyof T` is `string`. The field `a` of `T` is mapped, too.
  for (const value of isIndexSignature ? (propsOf(source)?.keys() ?? []) : listConstants(keys, fail)) {
    const sourceProp = likeProps?.get(String(value));
    props.set(String(value), {
      shape: evaluateValue({ kind: 'const', value }),
      isOptional: optionalSign === '' ? (sourceProp?.isOptional ?? false) : optionalSign !== '-?',
      notes: sourceProp?.notes ?? NO_NOTES,
      isNumberKey: typeof value === 'number',
    });
  }
  const index = isIndexSignature ? evaluate(node.value, withParam(scope, node.param, keys)) : undefined;
  return { kind: 'record', props, index, isNumberIndex: keys.kind === 'number' };

  function evaluateValue(key: Shape): Shape {
    const read = () => {
      const shape = evaluate(node.value, withParam(scope, node.param, key));
      return optionalSign === '-?' ? excludeKinds(shape, 'undefined') : shape;
    };
    try {
      return read();
    } catch (error) {
      if (!(error instanceof CircularType)) throw error;
      return tools.defer(nameOf(key), read, error);
    }
  }

  function mapTuple({ items, rest }: Extract<Shape, { kind: 'tuple' }>, mapAs: (part: Shape) => Shape): Shape {
    const mappedRest = rest && resolve(mapAs({ kind: 'array', element: rest }));
    return {
      kind: 'tuple',
      items: items.map(({ isOptional }, i) => ({
        shape: evaluateValue({ kind: 'const', value: String(i) }),
        isOptional: optionalSign === '' ? isOptional : optionalSign !== '-?',
      })),
      rest: mappedRest?.kind === 'array' ? mappedRest.element : undefined,
    };
  }
}
