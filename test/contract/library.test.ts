// Libraries whose schemas keep no promise: what they return is never taken for a checked value.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type StandardSchema, validate } from '../../src/contract/check/library.ts';
import { applySchemas, schemasOfSettings } from '../../src/contract/part-schemas.ts';
import { UNKNOWN_RESULT } from '../../src/contract/results.ts';

const schemaOf = (result: unknown, jsonSchema?: () => unknown): StandardSchema => ({
  '~standard': {
    version: 1,
    vendor: 'none',
    validate: () => result,
    ...(jsonSchema && { jsonSchema: { input: jsonSchema } }),
  },
});

describe('a validation result of a library', () => {
  for (const result of [undefined, null, 'valid', 7])
    test(`is an error of the library when it is ${result}`, () => {
      assert.throws(() => validate(schemaOf(result), {}, 'body'), /must return a value or issues/);
    });

  test('is an error of the library when its issues are not a list', () => {
    assert.throws(() => validate(schemaOf({ value: 1, issues: 'none' }), {}, 'body'), /must be an array/);
  });

  const rows: [name: string, issue: unknown, pointer: string, message: string][] = [
    ['that is null', null, '', 'is not valid'],
    ['without a message', { path: ['a', { key: 'b' }] }, '/a/b', 'is not valid'],
    ['with a path that is not a list', { message: 'no', path: 'a' }, '', 'no'],
    ['with a null step in its path', { message: 'no', path: [null] }, '/null', 'no'],
  ];
  for (const [name, issue, pointer, message] of rows)
    test(`is a mistake of the request when it has an issue ${name}`, () => {
      const problems = [{ in: 'query', pointer, code: 'library', message, params: {} }];
      assert.deepEqual(validate(schemaOf({ issues: [issue] }), {}, 'query'), { problems });
    });
});

describe('the document accepts any value for a library schema', () => {
  const rows: [name: string, jsonSchema: (() => unknown) | undefined][] = [
    ['without a JSON Schema', undefined],
    ['with a list as its JSON Schema', () => []],
    ['with null as its JSON Schema', () => null],
    [
      'whose JSON Schema function throws',
      () => {
        throw new Error('Date cannot be represented in JSON Schema');
      },
    ],
  ];
  for (const [name, jsonSchema] of rows)
    test(name, () => {
      const contract = { name: 'created', isDeprecated: false, dataIsOptional: false, results: [UNKNOWN_RESULT] };
      const settings = { body: schemaOf({ value: 1 }, jsonSchema) };
      const schemas = schemasOfSettings('created', settings, 'OrderController.ts:1');
      assert.deepEqual(applySchemas(contract, settings, schemas, (schema) => schema, {}).data, {});
    });
});
