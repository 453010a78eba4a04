// Libraries whose schemas keep no promise: what they return is never taken for a checked value.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { applySettings, type StandardSchema, validate } from '../../src/contract/check/library.ts';
import { UNKNOWN_RESULT } from '../../src/contract/results.ts';

const schemaOf = (result: unknown, jsonSchema?: () => unknown): StandardSchema => ({
  '~standard': { validate: () => result, ...(jsonSchema && { jsonSchema: { input: jsonSchema } }) },
});

describe('a result of a library', () => {
  for (const result of [undefined, null, 'valid', 7])
    test(`${result} is an error of the library`, () => {
      assert.throws(() => validate(schemaOf(result), {}, 'body'), /must return a value or issues/);
    });

  test('with issues that are no list is an error of the library', () => {
    assert.throws(() => validate(schemaOf({ value: 1, issues: 'none' }), {}, 'body'), /must be an array/);
  });

  const rows: [name: string, issue: unknown, pointer: string, message: string][] = [
    ['null', null, '', 'is not valid'],
    ['without a message', { path: ['a', { key: 'b' }] }, '/a/b', 'is not valid'],
    ['with a path that is no list', { message: 'no', path: 'a' }, '', 'no'],
    ['with a step that is null', { message: 'no', path: [null] }, '/null', 'no'],
  ];
  for (const [name, issue, pointer, message] of rows)
    test(`with an issue ${name} is a mistake of the request`, () => {
      const problems = [{ in: 'query', pointer, message }];
      assert.deepEqual(validate(schemaOf({ issues: [issue] }), {}, 'query'), { problems });
    });
});

describe('the document has any value', () => {
  const rows: [name: string, jsonSchema: (() => unknown) | undefined][] = [
    ['without a JSON Schema', undefined],
    ['for a JSON Schema that is a list', () => []],
    ['for a JSON Schema that is null', () => null],
    [
      'when the library throws',
      () => {
        throw new Error('Date cannot be represented in JSON Schema');
      },
    ],
  ];
  for (const [name, jsonSchema] of rows)
    test(name, () => {
      const contract = { name: 'created', isDeprecated: false, dataIsOptional: false, results: [UNKNOWN_RESULT] };
      const settings = { body: schemaOf({ value: 1 }, jsonSchema) };
      assert.deepEqual(applySettings(contract, settings, (schema) => schema).data, {});
    });
});
