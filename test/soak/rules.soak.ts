// Changes the folder in each way in which new code once served under old rules, round after round, while clients call
// the new code without a user. No call may be answered with 200. On every Node of SOAK_NODES (paths, separated by
// colons; default: this one). SOAK_FORM limits the forms by a part of their titles. Takes minutes (`npm run soak`).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openConnection } from '../support/cluster-client.ts';
import { createFolder, type Service, startService, write } from '../support/cluster-server.ts';

const ROUNDS = Number(process.env.SOAK_ROUNDS ?? 10);
const NODES = (process.env.SOAK_NODES ?? process.execPath).split(':');
const FORM = process.env.SOAK_FORM ?? '';

const USER =
  "access: 'user', authenticate: ({ authorization }) => authorization === 'Token ann' ? { id: 'ann' } : undefined";
const rules = (text: string) =>
  `import { defineService } from 'gatefold';\nexport default defineService({ ${text} });\n`;
const OPEN = rules("access: 'anyone'");
const index = (value: number) => `export default class { index() { return { value: ${value} }; } }\n`;
const BROKEN = 'export default class { index( { return 1 } }';
const CREATED = 'export default class { created() { return { ran: true }; } }\n';
const BASE = 'export class Base { ok() { return true; } }\n';
const GUARDED = `import { HttpError } from 'gatefold';
export class Base { ok() { return true; } _before() { throw new HttpError(403, 'GUARDED', 'no'); } }\n`;
const extended = (folder: string) => `import { Base } from '${folder}/base.ts';
export default class extends Base { static operations = { '*': { access: 'anyone' } }; created() { return { ran: true }; } }\n`;

type Files = Readonly<Record<string, string | undefined>>;

interface Site {
  readonly service: Service;
  /** The round, from 1. Each round has a group `new<round>`. */
  readonly round: number;
  /** The name of the file of the new group, in a release. */
  readonly newFile: string;
  /** Writes files of a release, one after the other. `undefined` removes a file. */
  put(release: number, files: Files): void;
  /** Replaces the link to the release that serves. */
  swap(release: number): void;
  /** Kills one of the workers. */
  kill(): void;
  /** Resolves with the next log line of the event after `change` began. */
  next(event: string): Promise<unknown>;
}

interface Form {
  readonly title: string;
  /** The files of release 1 before each round, beside AController. */
  readonly before: Files;
  /** Whether the service has had no service file. */
  readonly isWithoutRules?: boolean;
  /** The path that is called without a user. Default: the new group. */
  readonly path?: string;
  change(site: Site): Promise<void> | void;
}

const SERVICE = 'controllers/service.ts';
const A = 'controllers/AController.ts';
const STRICT = rules(USER);

const FORMS: readonly Form[] = [
  {
    title: 'stricter rules, then a controller',
    before: { [SERVICE]: OPEN },
    change: ({ put, newFile }) => put(1, { [SERVICE]: STRICT, [newFile]: CREATED }),
  },
  {
    title: 'the first rules, then a controller',
    before: {},
    isWithoutRules: true,
    change: ({ put, newFile }) => put(1, { [SERVICE]: STRICT, [newFile]: CREATED }),
  },
  {
    title: 'a guard of a base class, then a subclass',
    before: { [SERVICE]: OPEN, 'lib/base.ts': BASE, 'controllers/CController.ts': extended('../lib') },
    change: ({ put, newFile }) => put(1, { 'lib/base.ts': GUARDED, [newFile]: extended('../lib') }),
  },
  {
    title: 'rules that are rejected, with a controller',
    before: { [SERVICE]: OPEN },
    change: ({ put, newFile }) => put(1, { [SERVICE]: STRICT, [A]: BROKEN, [newFile]: CREATED }),
  },
  {
    title: 'a guard that is rejected, with a subclass',
    before: { [SERVICE]: OPEN, 'lib/base.ts': BASE, 'controllers/CController.ts': extended('../lib') },
    change: ({ put, newFile }) =>
      put(1, { 'lib/base.ts': GUARDED, 'controllers/CController.ts': BROKEN, [newFile]: extended('../lib') }),
  },
  {
    title: 'a release behind a link',
    before: { [SERVICE]: OPEN },
    change({ put, swap, newFile, round }) {
      put(2, { [SERVICE]: STRICT, [A]: index(round), [newFile]: CREATED });
      swap(2);
    },
  },
  {
    title: 'a rejected release behind a link, and back',
    before: { [SERVICE]: OPEN },
    async change({ put, swap, next, newFile }) {
      put(2, { [SERVICE]: STRICT, [A]: BROKEN, [newFile]: CREATED });
      swap(2);
      await next('generation-rejected');
      await sleep(100);
      swap(1);
    },
  },
  {
    title: 'a rejected release behind a link, and a worker dies',
    before: { [SERVICE]: OPEN },
    async change({ put, swap, next, kill, newFile }) {
      put(2, { [SERVICE]: STRICT, [A]: BROKEN, [newFile]: CREATED });
      swap(2);
      await next('generation-rejected');
      kill();
      await sleep(1500);
      swap(1);
      await sleep(300);
    },
  },
  {
    title: 'a worker dies just before a release is swapped, which is rejected',
    before: { [SERVICE]: STRICT, 'controllers/CController.ts': index(0) },
    path: '/api/a',
    async change({ put, swap, kill, next, newFile }) {
      put(2, { [SERVICE]: OPEN, [A]: index(0), [newFile]: CREATED, 'controllers/CController.ts': BROKEN });
      put(1, { [A]: index(-1) });
      await next('generation-serving');
      kill();
      swap(2);
      await sleep(1500);
      swap(1);
      await sleep(300);
    },
  },
  ...[0, 20, 60, 150, 300].map((gap) => ({
    title: `rules that are away for ${gap} ms beside an edit`,
    before: { [SERVICE]: STRICT },
    path: '/api/a',
    async change({ put, round }: Site) {
      put(1, { [A]: index(-round), [SERVICE]: undefined });
      await sleep(gap);
      put(1, { [SERVICE]: `${STRICT}// ${round}` });
    },
  })),
  {
    title: 'rules that are away while a worker dies',
    before: { [SERVICE]: STRICT },
    path: '/api/a',
    async change({ put, kill, round }) {
      put(1, { [SERVICE]: undefined });
      kill();
      await sleep(80);
      put(1, { [SERVICE]: `${STRICT}// ${round}`, [A]: index(-round) });
    },
  },
  {
    title: 'rules that are away for good, and both workers die',
    before: { [SERVICE]: STRICT },
    path: '/api/a',
    async change({ put, kill, next, round }) {
      put(1, { [SERVICE]: undefined });
      await next('generation-rejected');
      kill();
      kill();
      await sleep(1500);
      put(1, { [SERVICE]: `${STRICT}// ${round}`, [A]: index(-round) });
    },
  },
  {
    title: 'rules in two halves, then a controller',
    before: { [SERVICE]: OPEN },
    async change({ service, newFile, put }) {
      const path = join(service.dir, 'service.ts');
      writeFileSync(path, STRICT.slice(0, 60));
      put(1, { [newFile]: CREATED });
      await sleep(120);
      writeFileSync(path, STRICT);
    },
  },
  {
    title: 'weaker rules that are rejected, and a worker dies',
    before: { [SERVICE]: STRICT, 'controllers/CController.ts': index(0) },
    path: '/api/a',
    async change({ put, kill, next }) {
      put(1, { [SERVICE]: OPEN, 'controllers/CController.ts': BROKEN });
      await next('generation-rejected');
      kill();
      await sleep(1500);
    },
  },
  {
    title: 'a file under another name that has rules, then a controller, and a worker dies',
    before: {},
    isWithoutRules: true,
    async change({ put, kill, newFile }) {
      put(1, { 'controllers/services.ts': STRICT, [newFile]: CREATED });
      await sleep(500);
      kill();
      await sleep(1500);
      put(1, { [newFile]: undefined, 'controllers/services.ts': undefined, [A]: index(0) });
    },
  },
  {
    title: 'a swapped link outside the folder that has a guard, then a subclass',
    before: {
      [SERVICE]: OPEN,
      'shared-1/base.ts': BASE,
      'shared-2/base.ts': GUARDED,
      'controllers/CController.ts': extended('../shared'),
    },
    change({ service, put, newFile }) {
      const link = join(dirname(service.dir), 'shared');
      symlinkSync('shared-2', `${link}.next`);
      renameSync(`${link}.next`, link);
      put(1, { [newFile]: extended('../shared') });
    },
  },
  {
    title: 'stricter rules, then a link to a controller',
    before: { [SERVICE]: OPEN, 'lib/created.ts': CREATED },
    change({ service, put, newFile }) {
      put(1, { [SERVICE]: STRICT });
      symlinkSync('../lib/created.ts', join(dirname(service.dir), newFile));
    },
  },
];

for (const node of NODES) {
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
  describe(`Node ${version}: nothing serves under rules that it was not accepted with`, () => {
    for (const form of FORMS.filter(({ title }) => title.includes(FORM)))
      it(form.title, { timeout: ROUNDS * 60_000 }, (test) => runRounds(test, form, node));
  });
}

async function runRounds(test: TestContext, form: Form, node: string): Promise<void> {
  const root = dirname(createFolder(test));
  const current = join(root, 'current');
  const put: Site['put'] = (release, files) => {
    for (const [name, text] of Object.entries(files)) {
      const folder = join(root, 'releases', String(release));
      if (text === undefined) rmSync(join(folder, name), { force: true });
      else write(folder, name, text);
    }
  };
  const swap: Site['swap'] = (release) => {
    rmSync(`${current}.next`, { force: true });
    symlinkSync(`releases/${release}`, `${current}.next`);
    renameSync(`${current}.next`, current);
  };
  for (const release of [1, 2]) put(release, { 'package.json': '{"type":"module"}' });
  put(1, { ...form.before, [A]: index(0) });
  swap(1);
  const shared = join(root, 'releases/1/shared');
  const restoreShared = () => {
    rmSync(shared, { force: true });
    symlinkSync('shared-1', shared);
  };
  if (form.before['shared-1/base.ts'] !== undefined) restoreShared();
  const dir = join(current, 'controllers');
  const service = await startService(test, { node, dir, env: { DATA_DIR: join(root, 'data') } });
  const open: string[] = [];
  let asked = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    const newFile = `controllers/New${round}Controller.ts`;
    const begun = service.lines.length;
    const next: Site['next'] = (event) => service.logged(event, (line) => service.lines.indexOf(line) >= begun);
    const ended = new AbortController();
    const poll = async () => {
      while (!ended.signal.aborted) {
        const status = await statusOf(service.port, 'POST', form.path ?? `/api/new${round}`);
        asked++;
        if (status === 200) open.push(`round ${round}`);
        await sleep(3);
      }
    };
    const polls = [poll(), poll()];
    try {
      await form.change({ service, round, newFile, put, swap, next, kill: () => killWorker(service) });
      await Promise.race([next('generation-serving'), next('generation-rejected')]);
      await sleep(250);
    } finally {
      ended.abort();
      await Promise.all(polls);
    }
    // The next round begins with the files of the first.
    for (const release of [1, 2]) put(release, { [newFile]: undefined });
    swap(1);
    if (form.before['shared-1/base.ts'] !== undefined) restoreShared();
    if (form.isWithoutRules === true) {
      // Only an empty service file clears the mark that the service has had one.
      put(1, { [SERVICE]: rules(''), [A]: index(round + 0.5) });
      await answers(service.port, round + 0.5);
      put(1, { [SERVICE]: undefined });
    }
    put(1, { ...form.before, [A]: index(round) });
    await answers(service.port, round);
  }
  test.diagnostic(`${ROUNDS} rounds, ${asked} requests, ${open.length} open`);
  assert.ok(asked >= ROUNDS * 10, `only ${asked} requests were sent`);
  assert.deepEqual(open, []);
}

/** Resolves when both workers answer a user with the value. */
async function answers(port: number, value: number): Promise<void> {
  for (let run = 0; run < 8; await sleep(5)) {
    const connection = openConnection(port);
    const outcome = await connection.ask(
      'GET /api/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Token ann\r\nConnection: close\r\n\r\n',
    );
    connection.close();
    run = 'body' in outcome && outcome.status === 200 && JSON.parse(outcome.body).value === value ? run + 1 : 0;
  }
}

/** Returns 0 when the connection ended without an answer, because its worker was killed. */
async function statusOf(port: number, method: string, path: string): Promise<number> {
  const connection = openConnection(port);
  const target = path === '/api/a' ? `GET ${path}` : `${method} ${path}`;
  const outcome = await connection.ask(
    `${target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
  );
  connection.close();
  return 'status' in outcome ? outcome.status : 0;
}

function killWorker({ process: { pid } }: Service): void {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  const worker = Number(children[Math.floor(Math.random() * children.length)]);
  if (worker > 0) process.kill(worker, 'SIGKILL');
}
