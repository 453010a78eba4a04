// The type of the error bodies that `formatError` of a service file declares. A type that is not read is no mistake.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readErrorBody } from '../../src/contract/read-service.ts';
import { createSourceFiles } from '../../src/contract/source/files.ts';

describe('the type of the error body from formatError', () => {
  const rows: [name: string, source: string, type: string | undefined][] = [
    ['with a return type', 'export default { formatError(): { title: string } { throw 1; } };', 'object'],
    ['without a return type', 'export default { formatError() { return {}; } };', undefined],
    ['with the return type any', 'export default { formatError(): any { return {}; } };', undefined],
    ['with an unsupported return type', 'export default { formatError(): Map<1, 2> { throw 1; } };', undefined],
    ['in a file that cannot be parsed', 'export default { formatError(): string { throw 1; };', undefined],
    ['that is absent', 'export default {};', undefined],
    ['of a service that a function call makes', 'export default make();', undefined],
  ];
  for (const [name, source, type] of rows)
    test(name, () => {
      const files = createSourceFiles({ textOf: () => source, resolve: () => undefined, watch: () => {} });
      assert.equal(readErrorBody('/service.ts', files).schema?.type, type);
    });
});
