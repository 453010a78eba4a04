// Optional data, `data?: T` or with a default: requests that send nothing, over a real socket.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createDocument } from '../../src/documents/openapi.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { createFolder } from '../support/folder.ts';
import { type Service, startService } from '../support/service.ts';

const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });

const CONTROLLERS = {
  'XController.ts': `
    interface A { a: string }
    const seen = (data: unknown) => ({ data: data === undefined ? 'undefined' : data });
    export default class XController {
      created(data?: A) { return seen(data); }
      red(data: A = { a: 'default' }) { return seen(data); }
      patch(data: A | undefined) { return seen(data); }
      index(query?: { page: number }) { return seen(query); }
      deleted(query: { page?: number } = { page: 1 }) { return seen(query); }
      'POST loose'(data?: { a?: string }) { return seen(data); }
      'POST firm'(data: A) { return seen(data); }
    }`,
};

let service: Service;
before(async () => {
  service = await startService({ controllers: CONTROLLERS });
});
after(() => service.close());

describe('the data that an operation receives, or the status of the refusal', () => {
  const rows: [verb: string, path: string, body: string | undefined, expected: unknown][] = [
    ['POST', '', undefined, 'undefined'],
    ['POST', '', '', 'undefined'],
    ['POST', '', '{"a":"x"}', { a: 'x' }],
    ['POST', '', '{}', 422],
    ['POST', '', 'null', 422],
    ['PUT', '', undefined, { a: 'default' }],
    ['PUT', '', '{}', 422],
    ['PATCH', '', undefined, 'undefined'],
    ['GET', '', undefined, 'undefined'],
    ['GET', '?page=2', undefined, { page: 2 }],
    ['GET', '?page=x', undefined, 422],
    ['GET', '?other=1', undefined, 422],
    ['DELETE', '', undefined, {}],
    ['POST', '/loose', undefined, 'undefined'],
    ['POST', '/firm', undefined, 422],
  ];
  for (const [method, path, body, expected] of rows) {
    test(`${method} ${path} ${body}`, async () => {
      const response = await fetch(`${service.url}/api/x${path}`, {
        method,
        ...(body === undefined ? {} : { body, headers: { 'Content-Type': 'application/json' } }),
      });
      const answer = (await response.json()) as { data?: unknown };
      if (typeof expected === 'number') assert.equal(response.status, expected);
      else assert.deepEqual([response.status, answer.data], [200, expected]);
    });
  }
});

test('the document requires no body when the data is optional', async (t) => {
  const dir = createFolder(t, CONTROLLERS);
  const document = createDocument(await createGroups({ dir, log }).all(), {
    title: 'x',
    version: '1',
    description: undefined,
  });
  const { paths } = document as unknown as {
    paths: Record<string, Record<string, { requestBody?: { required?: boolean } }>>;
  };
  assert.equal(paths['/api/x']?.post?.requestBody?.required, false);
  assert.equal(paths['/api/x/firm']?.post?.requestBody?.required, true);
});
