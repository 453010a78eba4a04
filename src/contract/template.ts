// Template literal types as regular expressions.
import { type Fail, open, type Shape } from './shape.ts';

export const quote = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');

/** A regular expression for what may stand in the place of `${T}`. */
export function templatePart(shape: Shape, fail: Fail): string {
  const of = open(shape);
  switch (of.kind) {
    case 'string':
      return of.keywords === undefined ? '[\\s\\S]*' : inner(of.keywords.pattern, fail);
    case 'number':
      return '-?(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?';
    case 'boolean':
      return '(?:true|false)';
    case 'const':
      return quote(String(of.value));
    case 'null':
    case 'undefined':
      return of.kind;
    case 'union':
      return `(?:${of.of.map((part) => templatePart(part, fail)).join('|')})`;
    default:
      return fail('this inside of a template is not understood');
  }
}

function inner(pattern: unknown, fail: Fail): string {
  return typeof pattern === 'string'
    ? `(?:${pattern.replace(/^\^/, '').replace(/\$$/, '')})`
    : fail('a constrained string inside of a template is not understood');
}
