// Compares our doc comments with TypeScript's: where a tag begins, its name, and the text that belongs to it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readDoc } from '../../src/contract/source/doc-comment.ts';
import ts from '../support/typescript.mjs';

interface Read {
  readonly text: string;
  readonly tags: readonly (readonly [name: string, text: string])[];
}

/** Removes white space and asterisks, because margins do not matter. */
const plain = (text: string): string => text.replace(/[\s*]+/g, '');

function readByTypeScript(comment: string): Read {
  const file = ts.createSourceFile('a.ts', `${comment}\ntype A = 1;`, ts.ScriptTarget.Latest, true);
  const [comments] = [(file.statements[0] as ts.Statement & { jsDoc?: ts.JSDoc[] }).jsDoc ?? []];
  const doc = comments.at(-1);
  const textOf = (node: ts.JSDoc | ts.JSDocTag) => plain(ts.getTextOfJSDocComment(node.comment) ?? '');
  return {
    text: doc === undefined ? '' : textOf(doc),
    tags: (doc?.tags ?? []).map((tag) => [tag.tagName.text, textOf(tag)]),
  };
}

function readByUs(comment: string): Read {
  const { text, tags } = readDoc(comment);
  return { text: plain(text), tags: tags.map(({ name, text: value }) => [name, plain(value)]) };
}

/** TypeScript removes the type and the name from the text of these tags. Our text keeps them. */
const TYPED =
  /^(?:param|arg|argument|returns?|type|typedef|throws|exception|template|see|author|implements|augments|extends|this|enum|satisfies)$/;

function compare(comment: string): void {
  const theirs = readByTypeScript(comment);
  const ours = readByUs(comment);
  const trimmed = ours.tags.map(([name, value], i) => {
    const behind = theirs.tags[i]?.[1] ?? '';
    return TYPED.test(name) && value.endsWith(behind) ? [name, behind] : [name, value];
  });
  assert.deepEqual({ text: ours.text, tags: trimmed }, theirs, comment);
}

const COMMENTS = [
  '/** */',
  '/***/',
  '/** The name. */',
  '/** @minLength 3 */',
  '/**@minLength 3*/',
  '/*** @minLength 3 */',
  '/** The name. @minLength 3 */',
  '/** The name.\t@minLength 3 */',
  '/** The name.\u00a0@minLength 3 */',
  '/** The name.\u3000@minLength 3 */',
  '/** The name.\u2028@minLength 3 */',
  '/** The name.\u200b@minLength 3 */',
  '/** The name.@minLength 3 */',
  '/** The name - @minLength 3 @maxLength 5 */',
  '/** @minLength 3 @maxLength 5 @pattern ^[a-z]+$ */',
  '/** @minLength 3 characters at least */',
  '/** @minLength */',
  '/** @minLength\n * 3 */',
  '/** @minLength\n * @maxLength 3 */',
  '/**\n * The name.\n * @minLength 3\n */',
  '/**\n * The name. @minLength 3\n */',
  '/**\r\n * The name.\r\n * @minLength 3\r\n */',
  '/**\r * The name.\r * @minLength 3\r */',
  '/**\n   The name.\n   @minLength 3\n */',
  '/**\n *The name.\n *@minLength 3\n */',
  '/**\n ** The name.\n ** @minLength 3\n */',
  '/**\n * The name, and\n * more of it.\n *\n * @minLength 3\n * and text below it\n *\n * and more\n */',
  '/**\n * - one @minLength 3\n * - two @maxLength 4\n */',
  '/** Mail to someone@example.com */',
  '/** Mail to <someone@example.com> or (x@y) */',
  '/** Mail to @ home */',
  '/** @ minLength 3 */',
  '/**\n * @ minLength 3 */',
  '/** @@minLength 3 */',
  '/** @a@b */',
  '/** @remarks a@b @c */',
  '/** Use `@minLength 3` here */',
  '/** Use `x @minLength 3` here */',
  '/** @remarks use `x @minLength 3` here @maxLength 5 */',
  '/** @remarks use `x @minLength 3\n * here` @maxLength 5 */',
  '/** @remarks\n * ```ts\n * @minLength 3\n * x @maxLength 4\n * ```\n */',
  '/**\n * ```ts\n * @IsEmail() email: string;\n * ```\n */',
  '/** See {@link Other} @minLength 3 */',
  '/** See {@link Other @minLength 3} there */',
  '/** See {@link Other#name | the @name of it} there */',
  '/** See {@linkcode Other @minLength 3} {@linkplain Other @minLength 3} */',
  '/** See {@linked Other @minLength 3} */',
  '/** See {@inheritDoc Other} {@minLength 3} { @minLength 3} */',
  '/** @see {@link Other @x} @minLength 3 */',
  '/** @remarks {a: "b"} @minLength 3 */',
  '/** @pattern ^\\S+@\\S+$ */',
  '/** @pattern ^\\S+ @\\S+$ */',
  '/** @pattern ^[a-z]{1,3}$ @maxLength 3 */',
  '/** @pattern ^`a @b`$ */',
  '/** @TJS-type integer @min-length 3 @größe 4 @$x 5 @_y 6 @1z 7 */',
  '/** @minLength:3 @maxLength(4) @pattern=^a$ */',
  '/** @minLength 3. */',
  '/** @default "a @b" @title A title */',
  '/** @example\n * const a = "x @y";\n *   @decorated class A {}\n */',
  '/** @deprecated use {@link other} @minLength 3 */',
  '/** @type {integer} @minLength 3 */',
  '/** @param {{ a: "x @y" }} data - The data. @minLength 3 */',
  '/** @param {string}\n * data */',
  '/** @param\n * {string} data - text */',
  '/** @param data {{ a: "x @y" }} text @minLength 3 */',
  '/**\n * @param {{\n *   a: string,\n *   b: string\n * }} data - The data.\n * @returns {Promise<{ a: string }>} it */',
  '/** @returns {string} @deprecated */',
  '/** @template {string} T - a type @minLength 3 */',
  '/** @throws {Error} when it fails @minLength 3 */',
  '/** @typedef {string} Slug - text @pattern ^a$ */',
  '/** @public @readonly @internal @minLength 3 */',
  '/** @author Jane Doe <jane@example.com> @minLength 3 */',
];

describe('a doc comment has the same text and tags as in TypeScript', () => {
  for (const comment of COMMENTS) test(JSON.stringify(comment), () => compare(comment));

  test('comments of random pieces', () => {
    const words = 'The name. a@b.c 3 - ^[a-z]+$ ` `` ``` { } * ** " \' \\ <x> [y] @.'.split(' ');
    const tags = '@minLength @maxLength @pattern @x @remarks @deprecated @é-1 {@link A} {@link A b} {@code @@'.split(
      / (?=[@{])/,
    );
    const breaks = ['\n', '\n * ', '\n *', '\n\t* ', '\r\n * ', '\n *\n * ', '\n   '];
    const piece = fc.oneof(
      { arbitrary: fc.constantFrom(...words), weight: 4 },
      { arbitrary: fc.constantFrom(...tags), weight: 3 },
      { arbitrary: fc.constantFrom(...breaks), weight: 2 },
    );
    const gap = fc.constantFrom(' ', ' ', ' ', '', '\t', '  ', '\u00a0');
    const comment = fc
      .array(fc.tuple(gap, piece), { maxLength: 14 })
      .map((pieces) => `/**${pieces.flat().join('').replaceAll('*/', '')} */`);
    fc.assert(fc.property(comment, compare), {
      numRuns: Number(process.env.COMMENTS ?? 700),
      seed: Number(process.env.SEED ?? 5),
    });
  });
});
