// Failures of a load that may pass without a change of the file.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { HungLoad, isTransient } from '../../../src/live/load/passing-failures.ts';
import { SourceChanged } from '../../../src/live/load/source-texts.ts';

const rows: [what: string, error: unknown, expected: boolean][] = [
  ...['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'].map((code): [string, unknown, boolean] => [code, { code }, true]),
  ['a file that is being written', Object.create(SourceChanged.prototype), true],
  ['a missing file', Object.assign(new Error('no'), { code: 'ENOENT' }), false],
  ['an error without a code', new Error('EMFILE'), false],
  ['an import that takes too long', new HungLoad(10, 'it loops'), false],
  ['null', null, false],
  ['undefined', undefined, false],
  ['a text', 'EMFILE', false],
];
for (const [what, error, expected] of rows)
  it(`a load ${expected ? 'may' : 'does not'} succeed later after ${what}`, () =>
    assert.equal(isTransient(error), expected));
