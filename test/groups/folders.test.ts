// Groups in subfolders of the controllers folder: names, URLs, refusals, and files that are added while the service
// runs.
import assert from 'node:assert/strict';
import { mkdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../../src/api/client.ts';
import { groupNameOf, urlNameOf } from '../../src/base/group-name.ts';
import { createLog } from '../../src/base/log.ts';
import type { CallerRow } from '../../src/callers/access/credential-rights.ts';
import { parseTable } from '../../src/callers/credentials/table/table.ts';
import { createDocument } from '../../src/documents/openapi.ts';
import { createBaseline } from '../../src/live/folder/baseline.ts';
import { takeSnapshot } from '../../src/live/folder/snapshot.ts';
import { createFolderWatch } from '../../src/live/folder/watch.ts';
import { findLookAlikes } from '../../src/live/load/look-alikes.ts';
import { listControllers, listFolders, parseFileName } from '../../src/live/load/naming.ts';
import { createGroups, type Groups } from '../../src/live/load/registry.ts';
import type { Exchange } from '../../src/request/exchange.ts';
import { createLocateGroup } from '../../src/request/find-operation.ts';
import { makeRow, tableText } from '../support/credentials-bench.ts';
import { createFolder, write } from '../support/folder.ts';
import { asRaw, assertEnvelope, GATEFOLD, type Service, startService } from '../support/service.ts';

const ECHO = '(_, { page, method, slugs, path }) { return { page, method, slugs, path } }';
const group = (...names: string[]) => `export default { ${names.map((name) => `'${name}'${ECHO}`).join(', ')} }`;
const serviceFile = (options: string) =>
  `import { defineService } from '${GATEFOLD}';\nexport default defineService({ ${options} });\n`;
const FOLDERS = { 'service.mjs': serviceFile('folders: true') };
const loadAll = (groups: Groups) => groups.loadAll({ skip: new Map(), onLoading: () => {} });
const locate = (groups: Groups, groupInUrl: string, ...slugs: string[]) =>
  groups.locate({ groupInUrl, slugs }, ['api', groupInUrl, ...slugs], 1);
const log = createLog({ level: 'silent', sink: { write() {}, flush() {} } });

describe('names of groups in folders', () => {
  for (const [page, name] of [
    ['v2/order', 'v2/Order'],
    ['v2-1/order', 'v2-1/Order'],
    ['v2/Order', 'v2/Order'],
    ['order', 'Order'],
    ['V2/order', undefined],
    ['v_2/order', undefined],
    ['2v/order', undefined],
    ['v2/', 'v2/'],
    ['/', '/'],
    ['//', undefined],
    ['', undefined],
    ['/order', undefined],
    ['v2//order', undefined],
    ['v2/v3/order', undefined],
    ['v2/../order', undefined],
    ['../order', undefined],
    ['v2/__proto__', undefined],
  ] as const)
    test(`${page} → ${name}`, () => {
      assert.equal(groupNameOf(page), name);
      if (name !== undefined) assert.equal(urlNameOf(name), page.toLowerCase());
    });

  test('listControllers lists one level of folders and skips linked folders', (t) => {
    const dir = createFolder(t, {
      'AController.mjs': '',
      'v2/AController.mjs': '',
      'v2/AController.ts': '',
      'v2/notes.mjs': '',
      'v2/deep/BController.mjs': '',
      'V3/AController.mjs': '',
      'v_4/AController.mjs': '',
      '.git/AController.mjs': '',
      'empty/readme.txt': '',
    });
    symlinkSync(join(dir, 'v2'), join(dir, 'linked'));
    mkdirSync(join(dir, 'v5/XController.mjs'), { recursive: true });
    const all = { A: 'AController.mjs', 'v2/A': 'v2/AController.ts' };
    assert.deepEqual(Object.fromEntries(listControllers(dir, listFolders(dir))), all);
    assert.deepEqual(
      [...listControllers(dir)],
      [['A', 'AController.mjs']],
      'folders hold no groups without a service file',
    );
    write(dir, 'service.mjs', serviceFile(''));
    assert.deepEqual(Object.fromEntries(listControllers(dir)), { ...all, service: 'service.mjs' });
    write(dir, 'V2Controller.mjs', '');
    assert.ok(
      ![...listControllers(dir).keys()].some((name) => name.includes('/')),
      'V2Controller.mjs takes the URLs of the folder v2',
    );
  });

  test('a key names its groups as URLs do', () => {
    const row = (fields: Record<string, unknown>) => parseTable(tableText(makeRow(fields).row));
    const [good] = row({ groups: ['v2/order', 'user'] }).rows.values();
    assert.deepEqual([...((good?.groups ?? []) as Set<string>)], ['v2/Order', 'User']);
    for (const groups of [['v2/../order'], ['v2//'], ['a/b/c']]) assert.equal(row({ groups }).quarantined.length, 1);
  });
});

const rows: Record<string, CallerRow> = Object.fromEntries(
  Object.entries({ folder: ['v2/Order'], top: ['Order', 'V2'], sdk: undefined }).map(([name, groups]) => [
    name,
    {
      application: { id: name, name },
      handler: groups === undefined ? 'v2/Sdk' : undefined,
      groups: groups && new Set(groups),
      methods: undefined,
    },
  ]),
);
const credentials = {
  identify: (name: string) => {
    const row = rows[name];
    return row === undefined ? ({ kind: 'foreign' } as const) : ({ kind: 'row', row } as const);
  },
};
const controllers = {
  ...FOLDERS,
  'OrderController.mjs': group('index'),
  'ShopController.mjs': group('index', 'order'),
  'A_bController.mjs': group('index'),
  'a/BController.mjs': group('index'),
  'shop/OrderController.mjs': group('index'),
  'v2/OrderController.mjs': group('index', 'hello', 'created'),
  'v2/ItemController.mjs': group('GET', 'PUT', 'GET {id}/x'),
  'v2/SdkController.mjs': group('index', 'hello'),
  'v2/NamedController.mjs': `export class NamedController { index${ECHO} }`,
};

describe('groups in folders', () => {
  let service: Service;
  before(async () => {
    service = await startService({
      controllers,
      expectedErrors: ['request-failed'],
      parts: { credentials },
    });
  });
  after(() => service.close());
  const ask = (path: string, authorization?: string, method = 'GET') =>
    fetch(`${service.url}/api/${path}`, { method, ...(authorization && { headers: { authorization } }) });

  const answered: [path: string, page: string, method: string, slugs: string[]][] = [
    ['order', 'order', 'index', []],
    ['v2/order', 'v2/order', 'index', []],
    ['v2/Order', 'v2/Order', 'index', []],
    ['/v2//order/', 'v2/order', 'index', []],
    ['%762/%6frder', 'v2/order', 'index', []],
    ['v2/order/hello/7', 'v2/order', 'hello', ['hello', '7']],
    ['shop%2Forder', 'shop', 'order', ['order']],
    ['order%2Fv2%2Forder', 'order', 'index', ['v2/order']],
    ['v2/item', 'v2/item', 'GET', []],
    ['v2/item/7/x', 'v2/item', 'GET {id}/x', ['7', 'x']],
    ['v2/named', 'v2/named', 'index', []],
    ['shop/order', 'shop', 'order', ['order']],
    ['a_b', 'a_b', 'index', []],
  ];
  for (const [path, page, method, slugs] of answered)
    test(`${path} → ${page} ${method}`, async () => {
      const body = (await (await ask(path)).json()) as Record<string, unknown>;
      assert.deepEqual([body.page, body.method, body.slugs], [page, method, slugs]);
    });

  const refused: [path: string, status: number, code: string][] = [
    ['v2', 404, 'GROUP_NOT_FOUND'],
    ['v2/nothing', 404, 'GROUP_NOT_FOUND'],
    ['V2/order', 404, 'GROUP_NOT_FOUND'],
    ['v2/order%2Fhello', 404, 'GROUP_NOT_FOUND'],
    ['v2%2Forder', 404, 'GROUP_NOT_FOUND'],
    ['v2%2forder', 404, 'GROUP_NOT_FOUND'],
    ['%762%2Forder', 404, 'GROUP_NOT_FOUND'],
    ['v2%2Forder/hello', 404, 'GROUP_NOT_FOUND'],
    ['v2%2F/order', 404, 'GROUP_NOT_FOUND'],
    ['v2%2F%2Forder', 404, 'GROUP_NOT_FOUND'],
    ['v2%2Forder%2Fhello', 404, 'GROUP_NOT_FOUND'],
    ['v2%252Forder', 404, 'GROUP_NOT_FOUND'],
    ['v2/..%2Forder', 404, 'GROUP_NOT_FOUND'],
    ['v2/v2/order', 404, 'GROUP_NOT_FOUND'],
    ['%2Fv2/order', 404, 'GROUP_NOT_FOUND'],
    ['a/b', 500, 'GROUP_NOT_LOADABLE'],
  ];
  for (const [path, status, code] of refused)
    test(`${path} is ${status} ${code}`, async () => {
      assertEnvelope(await asRaw(await ask(path)), status, code);
    });

  const keys: [key: string, path: string, outcome: string | number][] = [
    ['folder', 'v2/order', 'v2/order'],
    ['folder', 'v2%2Forder', 403],
    ['folder', 'order', 403],
    ['folder', 'v2/item', 403],
    ['top', 'order', 'order'],
    ['top', 'v2/order', 403],
    ['top', 'v2', 404],
    ['sdk', 'v2/hello', 'hello'],
    ['sdk', 'v2/sdk/hello', 'hello'],
    ['sdk', 'v2/order', 'index'],
  ];
  for (const [key, path, outcome] of keys)
    test(`the key ${key}: ${path} → ${outcome}`, async () => {
      const answer = await ask(path, key);
      const { page, method } = (await answer.json()) as Record<string, string>;
      assert.equal(typeof outcome === 'number' ? answer.status : key === 'sdk' ? method : page, outcome);
    });

  test('a request for a handler outside of a folder does not look at the folder', () => {
    const step = createLocateGroup({ locate: () => assert.fail() }, '/api');
    const caller = { row: { handler: 'Sdk' } };
    step({ caller, groupInUrl: 'order', slugs: [], resolvedPath: { path: { segments: [] } } } as unknown as Exchange);
  });

  test('the request log has the page in lower case', async () => {
    await ask('v2/Order');
    assert.ok(service.lines.some(({ event, page }) => event === 'request' && page === 'v2/order'));
  });

  test('the client calls a group by its page', async () => {
    const api = createClient<{ 'v2/item': { PUT(data: object): { page: string } } }>(service.url);
    assert.equal((await api['v2/item'].PUT({ body: {} })).page, 'v2/item');
  });

  test('the first and the second file of a new folder answer the next request', async () => {
    assert.equal((await ask('fresh/one')).status, 404);
    write(service.dir, 'fresh/OneController.mjs', group('index'));
    assert.equal((await ask('fresh/one')).status, 200);
    await sleep(150);
    for (const pause of [0, 150]) {
      await sleep(pause);
      assert.equal((await ask('fresh/two')).status, 404);
    }
    write(service.dir, 'fresh/TwoController.mjs', group('index'));
    assert.equal((await ask('fresh/two')).status, 200);
    mkdirSync(join(service.dir, 'later'));
    await sleep(150);
    for (const pause of [150, 150]) {
      assert.equal((await ask('later/one')).status, 404);
      await sleep(pause);
    }
    write(service.dir, 'later/OneController.mjs', group('index'));
    assert.equal((await ask('later/one')).status, 200);
  });

  test('a new file takes over the URLs of the folder with its name', async () => {
    write(service.dir, 'turn/OrderController.mjs', group('index'));
    assert.equal(((await (await ask('turn/order')).json()) as { page: string }).page, 'turn/order');
    write(service.dir, 'TurnController.mjs', group('index', 'order'));
    assert.equal(((await (await ask('turn')).json()) as { page: string }).page, 'turn');
    assert.equal(((await (await ask('turn/order')).json()) as { page: string }).page, 'turn');
  });
});

test('a folder beside its file, and equal operation ids, are refused with the names of both files', async (t) => {
  const dir = createFolder(t, controllers);
  const loads = await loadAll(createGroups({ dir, log }));
  assert.deepEqual(loads.flatMap(({ file, ok, error }) => (ok ? [] : [`${file}: ${error}`])).sort(), [
    'a/BController.mjs: Error: its operations would have the ids of those in A_bController.mjs: rename one of the two',
  ]);
  assert.deepEqual(
    findLookAlikes(dir, loads).map(({ file, reason }) => `${file}: ${reason}`),
    [
      'shop/OrderController.mjs: ShopController.mjs serves the URLs of the folder shop: move it to shop/Controller.mjs, or rename one of the two',
    ],
  );
});

for (const [serving, added] of [
  ['v2/OrderController.mjs', 'V2_orderController.mjs'],
  ['RootController.mjs', 'Controller.mjs'],
  ['v2/Controller.mjs', 'V2_rootController.mjs'],
  ['v2/RootController.mjs', 'V2_rootController.mjs'],
] as const)
  test(`${added} does not serve beside ${serving}, which serves: a start would refuse one of the two`, async (t) => {
    const dir = createFolder(t, { ...FOLDERS, [serving]: group('index') });
    const groups = createGroups({ dir, log });
    await loadAll(groups);
    write(dir, added, group('index'));
    await sleep(1); // A folder is examined once in a turn of the event loop.
    const { group: name = '' } = parseFileName(added) ?? {};
    await assert.rejects(
      async () => groups.find(urlNameOf(name)),
      ({ cause }: { cause: Error }) => cause.message.includes(`the ids of those in ${serving}`),
    );
    const loads = await loadAll(createGroups({ dir, log }));
    assert.equal(loads.filter(({ ok }) => !ok).length, 1);
  });

test('a first segment without a folder is the group, and a file that serves is not a look-alike', async (t) => {
  const dir = createFolder(t, { ...controllers, 'empty/notes.txt': '' });
  const groups = createGroups({ dir, log });
  const loads = await loadAll(groups);
  for (const segment of ['empty', 'nothing', 'order', '', '..', 'shop'])
    assert.equal(locate(groups, segment, 'x'), undefined, segment);
  assert.equal(locate(groups, 'v2'), undefined);
  assert.deepEqual(locate(groups, 'v2', 'order', '7'), { groupInUrl: 'v2/order', slugs: ['7'] });
  write(dir, 'v2/NewController.mjs', group('index'));
  assert.ok(!findLookAlikes(dir, loads).some(({ file }) => file.startsWith('v2/')));
  const { reason } = findLookAlikes(dir).find(({ file }) => file === 'v2/OrderController.mjs') ?? {};
  assert.equal(reason, 'it is in a subfolder, which serves with folders: true in the service file');
});

for (const [title, files] of Object.entries({
  'without a service file': {},
  'without folders: true': { 'service.mjs': serviceFile('strict: true') },
  'beside a service file that does not load': { 'service.mjs': 'export default { folders: true };' },
}))
  test(`${title}, files in folders are not loaded, even if the supervisor names them`, async (t) => {
    const { 'service.mjs': _, ...withoutService } = controllers;
    const dir = createFolder(t, { ...withoutService, ...files });
    const groups = createGroups({ dir, log });
    const named = [...listControllers(dir, listFolders(dir)).values()];
    assert.ok(named.includes('v2/OrderController.mjs'));
    const loads = await groups.loadAll({ files: named, skip: new Map(), onLoading: () => {} });
    const names = loads.map(({ group: name }) => name).filter((name) => name !== 'service');
    assert.deepEqual(names.sort(), ['A_b', 'Order', 'Shop']);
    assert.equal(locate(groups, 'v2', 'order'), undefined);
    assert.equal(await groups.find('v2/order'), undefined);
  });

test('the OpenAPI document has a tag per group, and joins operation ids with _', async (t) => {
  const groups = createGroups({ dir: createFolder(t, controllers), log });
  await loadAll(groups);
  const { tags, paths } = JSON.parse(
    JSON.stringify(createDocument(await groups.all(), { title: 't', version: '1' })),
  ) as {
    tags: { name: string }[];
    paths: Record<string, Record<string, { operationId: string; tags: string[] }>>;
  };
  assert.ok(tags.some(({ name }) => name === 'v2/item'));
  assert.deepEqual(paths['/api/v2/item']?.put?.tags, ['v2/item']);
  assert.equal(paths['/api/v2/item']?.put?.operationId, 'v2_item_PUT');
  assert.equal(paths['/api/v2/item/{id}/x']?.get?.operationId, 'v2_item_GET_by_id_x');
});

test('the folder watch of the supervisor reports an edit and a removal in a subfolder', async (t) => {
  for (const change of [
    (dir: string) => write(dir, 'v2/OrderController.mjs', `${group('index')}\n// edited`),
    (dir: string) => rmSync(join(dir, 'v2/OrderController.mjs')),
    (dir: string) => rmSync(join(dir, 'v2'), { recursive: true }),
  ]) {
    const dir = createFolder(t, {
      ...FOLDERS,
      'AController.mjs': group('index'),
      'v2/OrderController.mjs': group('index'),
    });
    let changed: () => void = () => {};
    const isChanged = new Promise<void>((done) => {
      changed = done;
    });
    const watch = createFolderWatch({ dir, log, onChange: changed });
    const groups = createGroups({ dir, log });
    const snapshot = watch.takeSnapshot();
    const loads = await loadAll(groups);
    assert.ok(snapshot !== undefined);
    watch.endLoad({ snapshot, begunAt: Date.now(), groups: loads, files: groups.closure(), broken: false });
    watch.start();
    t.after(() => watch.stop());
    change(dir);
    await isChanged;
    watch.stop();
  }
});

test('a change in a subfolder counts only with folders: true in the service file', async (t) => {
  for (const [options, difference] of [
    ['folders: true', 'v2/OrderController.mjs'],
    ['folders: false', undefined],
  ] as const) {
    const dir = createFolder(t, { 'service.mjs': serviceFile(options), 'v2/OrderController.mjs': group('index') });
    const baseline = createBaseline(dir);
    const look = () =>
      takeSnapshot({ dir, paths: baseline.paths(), links: baseline.links(), wholeTree: false }) ?? new Map();
    const before = look();
    const groups = createGroups({ dir, log });
    const loads = await loadAll(groups);
    const load = {
      snapshot: before,
      begunAt: Date.now() + 1000,
      groups: loads,
      files: groups.closure(),
      broken: false,
    };
    baseline.replace(load, true);
    assert.equal(baseline.differenceFrom(look()), undefined);
    write(dir, 'v2/OrderController.mjs', `${group('index')}\n// edited`);
    assert.equal(baseline.differenceFrom(look()), difference && `file:${join(realpathSync(dir), difference)}`);
    write(dir, 'service.mjs', `${serviceFile(options)}\n// edited`);
    assert.ok(baseline.differenceFrom(look()) !== undefined);
  }
});
