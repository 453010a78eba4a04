// The exports of the service file: as a module of ECMAScript, and as tsx compiles it to CommonJS on Node 20.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { defineService } from '../../src/api/controller.ts';
import { createService } from '../../src/groups/service-file.ts';

const FORMS: Readonly<Record<string, (exports: object) => Readonly<Record<string, unknown>>>> = {
  'a module': (exports) => ({ ...exports }),
  'a compiled module': (exports) => ({ default: { __esModule: true, ...exports }, __esModule: true }),
};
const read = (module: Readonly<Record<string, unknown>>) =>
  createService('/controllers/service.ts', module, () => ({ schema: undefined, defs: {} }));

for (const [form, moduleOf] of Object.entries(FORMS))
  describe(`the service file as ${form}`, () => {
    test('has the definition of its default export', () => {
      const { strict, file } = read(moduleOf({ default: defineService({ strict: true }) }));
      assert.deepEqual([strict, file], [true, 'service.ts']);
    });

    test('is refused with a property beside the default export', () => {
      const module = moduleOf({ default: defineService({}), access: 'user' });
      assert.throws(() => read(module), /it exports access beside its default: write it into defineService/);
    });

    test('is refused without a definition', () => {
      assert.throws(() => read(moduleOf({ default: {} })), { code: 'INVALID_SERVICE_FILE' });
    });
  });
