// A table of credentials for tests: `Bearer app` is a live application, and `Bearer dead` is a revoked one.
import type { Caller } from '../../src/callers/access/key-check.ts';

const ROW = {
  application: { id: 'app', name: 'App', scopes: ['read'] },
  handler: undefined,
  groups: '*' as const,
  methods: undefined,
};

export function makeApplication(authorization: string): Caller {
  if (authorization === 'Bearer app') return { kind: 'row', row: ROW };
  if (authorization === 'Bearer dead') return { kind: 'refused', reason: 'its row is revoked' };
  return { kind: 'foreign' };
}
