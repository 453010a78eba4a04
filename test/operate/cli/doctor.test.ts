// `gatefold doctor` finds mistakes, prints no secret, and exits with 1 only when there is a mistake.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { findLookAlikes } from '../../../src/live/load/look-alikes.ts';
import { runCommand } from '../../../src/operate/cli/command.ts';
import { checkNode, command, examine as examineParts } from '../../../src/operate/cli/doctor.ts';
import type { Finding, Report } from '../../../src/operate/cli/finding.ts';
import { type Inspection, inspectFolder, type LoadedGroup } from '../../../src/operate/cli/inspection.ts';
import { version } from '../../../src/own-files.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';
import { answerInspections, inspectHere, inspection } from '../../support/inspection-here.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const HASH = `sha256:${'A'.repeat(43)}`;
const SDK = { 'controllers/SdkController.mjs': 'export default { index() {} };\n' };

type Run = Parameters<typeof runHere>[0];
const run: Run = (argv, io) => runCommand(command, argv, io);

let soundInspection: Promise<Inspection> | undefined;
/** Starts no process: the controllers are those of SDK, in another folder. For findings about all but controllers. */
const runWithSound: Run = (argv, io) => {
  const examineWithSound: typeof command.run = async (call) => {
    soundInspection ??= inspectFolder({ ...call.settings, controllersDir: join(soundProject, 'controllers') }, io);
    return examineParts({ ...call, inspection: await soundInspection });
  };
  return runCommand({ ...command, run: examineWithSound }, argv, io);
};
const soundProject = makeProject({ after }, SDK);

interface Examined {
  readonly ok: boolean;
  readonly wrong: number;
  readonly warnings: number;
  readonly findings: readonly Finding[];
}

const examine = (cwd: string, argv: readonly string[] = [], env: Record<string, string> = {}) =>
  examineBy(run, cwd, argv, env);
const examineBeside = (cwd: string, argv: readonly string[] = [], env: Record<string, string> = {}) =>
  examineBy(runWithSound, cwd, argv, env);

async function examineBy(run: Run, cwd: string, argv: readonly string[], env: Record<string, string>) {
  const { code, out, err } = await runHere(run, ['--json', ...argv], {
    cwd,
    env: { LOAD_TIMEOUT: '2s', ...env },
    now: () => NOW,
  });
  assert.equal(err, '');
  assert.equal(out.trimEnd().split('\n').length, 1);
  const report = JSON.parse(out) as Examined;
  assert.equal(code, report.wrong === 0 ? 0 : 1);
  assert.equal(report.ok, code === 0);
  return {
    ...report,
    out,
    /** The findings as `level topic file: message`, with paths relative to the project. */
    lines: report.findings.map(({ level, topic, at, message }) =>
      `${level} ${topic} ${at === undefined ? '' : `${at}: `}${message}`.replaceAll(`${cwd}/`, ''),
    ),
  };
}

const has = (lines: readonly string[], expected: string) =>
  assert.ok(
    lines.some((line) => line.includes(expected)),
    `${expected}\nis not in\n${lines.join('\n')}`,
  );

test('doctor finds nothing wrong with a sound project', async (t) => {
  inspectHere(t);
  const cwd = makeProject(t, { ...SDK, 'data/production.json': '{"production":[]}' });
  const { code, out, err } = await runHere(run, [], { cwd });
  assert.deepEqual([code, err], [0, '']);
  const note =
    'SdkController.mjs: index: not documented: its result has no type in the source, so it is unknown: annotate it, or write a schema as result';
  assert.equal(out, `note  controllers  controllers/${note}\n\nNothing is wrong.\n`);
});

test('doctor prints the number of mistakes and warnings in its last line', async (t) => {
  inspectHere(t);
  const soon = { id: 'aaaaaaaaaaaa', name: 'soon', hash: HASH, expires_at: '2026-01-02' };
  const cwd = makeProject(t, { ...SDK, 'data/production.json': JSON.stringify({ production: [soon] }) });
  const { code, out } = await runHere(run, [], { cwd, now: () => NOW, env: { LOG_LEVEL: 'loud' } });
  assert.equal(code, 1);
  assert.ok(out.endsWith('\n\n1 thing is wrong, 1 warning.\n'), out);
});

test('checkNode reports a version of Node that is too old', () => {
  const findings: string[] = [];
  const report: Report = (level, message) => findings.push(`${level} ${message}`);
  for (const version of ['18.20.0', '20.1.0', '24.1.0']) checkNode(report, version);
  assert.deepEqual(findings, ['wrong Node 18.20.0 is too old: 20 or later is needed']);
});

test('doctor reports variables that nothing reads, and trusted proxies that include every address', async (t) => {
  inspectHere(t);
  const cwd = makeProject(t, SDK);
  const env = { RATELIMIT: '100/s', GATEFOLD_DOCS: 'off', TRUSTED_PROXIES: '10.0.0.0/8,::/0', HOSTNAME: 'a' };
  const { lines } = await examineBeside(cwd, [], env);
  assert.deepEqual(
    lines.filter((line) => line.includes(' settings ')),
    [
      'wrong settings GATEFOLD_DOCS: the variable is called DOCS',
      'warning settings nothing reads RATELIMIT; the setting is called RATE_LIMIT',
      'warning settings TRUSTED_PROXIES: ::/0 is every address, so each client can choose the address that it is limited by',
    ],
  );
});

test('doctor reports a page of PUBLIC_FALLBACK that the fallback of the service file hides', async (t) => {
  inspectHere(t);
  const service = (fallback: string) =>
    `import { defineService, mount } from 'gatefold';\nexport default defineService({ access: 'anyone'${fallback} });\n`;
  const fallback = ', fallback: mount(() => new Response())';
  const cwd = makeProject(t, { ...SDK, 'controllers/service.ts': service(fallback), 'web/index.html': '' });
  const env = { PUBLIC_DIR: 'web', PUBLIC_FALLBACK: 'index.html' };
  const finding = 'PUBLIC_FALLBACK: its page is never sent, because the fallback answers in its place';
  has((await examine(cwd, [], env)).lines, `warning controllers controllers/service.ts: ${finding}`);
  const isNamed = async (cwd: string, env: Record<string, string>) =>
    (await examine(cwd, [], env)).lines.some((line) => line.includes('PUBLIC_FALLBACK'));
  assert.equal(await isNamed(cwd, { PUBLIC_DIR: 'web' }), false);
  const other = makeProject(t, { ...SDK, 'controllers/service.ts': service(''), 'web/index.html': '' });
  assert.equal(await isNamed(other, env), false);
});

test('doctor reports invalid settings, and prints no secret', async (t) => {
  const cwd = makeProject(t, SDK);
  const secret = 'correct-horse-battery-staple-0123';
  const env = { PORT: 'http', BODY_LIMIT: '2MiB', KEEP_ALIVE_TIMEOUT: '72', SESSION_KEY: secret, HOST: '' };
  const { lines, wrong, out } = await examineBeside(cwd, ['--log-level', 'warn', '--workers=none'], env);
  assert.equal(wrong, 2);
  assert.deepEqual(
    lines.filter((line) => line.includes(' settings ')),
    [
      'wrong settings PORT: "http" is not a whole number from 0 to 65535',
      'wrong settings --workers: "none" is not a whole number from 1 to 1024',
    ],
  );
  assert.ok(!out.includes(secret));
  const visible = await examineBeside(cwd, ['--session-key', secret]);
  has(visible.lines, 'warning settings --session-key shows the secret to every user of this machine; use SESSION_KEY');
  assert.ok(!visible.out.includes(secret));
  const short = await examineBeside(cwd, [], { SESSION_KEY: 'hunter2' });
  assert.equal(short.wrong, 1);
  assert.ok(!short.out.includes('hunter2'));
});

test('doctor reports a missing controllers folder and checks the rest', async (t) => {
  const cwd = makeProject(t, { 'data/production.json': '{}' });
  rmSync(join(cwd, 'controllers'), { recursive: true });
  const { lines, wrong } = await examine(cwd);
  assert.equal(wrong, 2);
  has(lines, `wrong folder Cannot read the controllers folder controllers: it does not exist`);
  has(lines, 'wrong credentials Cannot read data/production.json: it has no list "production"');
});

test('doctor goes on where it cannot look at the session key', async (t) => {
  const cwd = makeProject(t, { ...SDK, 'data/production.json': '{"production":[{"name":"broken"}]}' });
  symlinkSync('session.key', join(cwd, 'data/session.key'));
  const { lines } = await examineBeside(cwd);
  has(lines, 'wrong credentials data/production.json: credential "broken" is invalid and was skipped');
  assert.deepEqual(
    lines.filter((line) => line.includes('ELOOP')),
    [],
  );
});

test('doctor reports controllers and tables that other users can write', async (t) => {
  const cwd = makeProject(t, {
    ...SDK,
    'controllers/service.mjs': 'export default 1;',
    'controllers/v2/OrderController.mjs': 'export default { GET: () => 1 };',
    'data/production.json': '{"production":[]}',
    'data/session.key': 'x'.repeat(32),
  });
  chmodSync(join(cwd, 'controllers'), 0o777);
  chmodSync(join(cwd, 'controllers/v2'), 0o777);
  chmodSync(join(cwd, 'controllers/SdkController.mjs'), 0o664);
  chmodSync(join(cwd, 'data'), 0o777);
  chmodSync(join(cwd, 'data/production.json'), 0o666);
  chmodSync(join(cwd, 'data/session.key'), 0o644);
  const { lines, wrong } = await examineBeside(cwd);
  assert.equal(wrong, 4);
  has(lines, `wrong folder controllers/v2: every user of this machine can write to it`);
  has(lines, 'wrong credentials data: every user of this machine can write to it');
  has(lines, 'warning credentials data/session.key: every user of this machine can read it');
  has(lines, `wrong folder controllers: every user of this machine can write to it`);
  has(lines, 'note folder controllers/SdkController.mjs: its group can write to it');
  has(lines, 'wrong credentials data/production.json: every user of this machine can write to it');
});

test('doctor does not count the service file as a controller', async (t) => {
  inspectHere(t);
  const service = "import { defineService } from 'gatefold';\nexport default defineService({ strict: true });";
  const cwd = makeProject(t, {
    'controllers/service.mjs': service,
  });
  assert.deepEqual((await examine(cwd)).lines, ['warning folder controllers: it has no controller']);
});

test('doctor reports a service file that is gone, and a folder that cannot keep its mark', async (t) => {
  inspectHere(t);
  const marked = makeProject(t, { ...SDK, 'data/service-file.accepted': '' });
  has((await examineBeside(marked)).lines, 'wrong service the service has had a service file, and it is gone');
  const service = "import { defineService } from 'gatefold';\nexport default defineService({ strict: true });";
  const project = makeProject(t, { ...SDK, 'controllers/service.mjs': service, file: '' });
  const { lines } = await examine(project, ['--data-dir', join(project, 'file/none')]);
  has(lines, 'warning service file/none: it cannot be written');
});

test('doctor tries to write where DATA_DIR is missing', { skip: process.platform !== 'linux' }, async (t) => {
  inspectHere(t);
  const service = "import { defineService } from 'gatefold';\nexport default defineService({ strict: true });";
  const project = makeProject(t, { ...SDK, 'controllers/service.mjs': service });
  const before = readdirSync(project);
  const { lines } = await examine(project, ['--data-dir', join(project, 'new/data')]);
  assert.ok(!lines.some((line) => line.includes('cannot be written')), lines.join('\n'));
  assert.deepEqual(readdirSync(project), before);
  has((await examine(project, ['--data-dir', '/proc/gatefold'])).lines, 'warning service /proc/gatefold: it cannot be');
});

test('doctor names a service file that does not load once', async (t) => {
  inspectHere(t);
  const service = "import { defineService } from 'gatefold';\nexport default defineService({ strict: 1 });";
  const { lines, wrong } = await examine(makeProject(t, { ...SDK, 'controllers/service.mjs': service }));
  assert.equal(wrong, 1, lines.join('\n'));
  has(lines, 'wrong service controllers/service.mjs:2: it does not load, so every request is a 500: ');
});

test('doctor reports what an inspection says about groups, operations and fields', async (t) => {
  const cwd = makeProject(t, {
    ...SDK,
    'node_modules/gatefold/package.json': '{"name":"gatefold","version":"0.0.1"}',
  });
  const path = join(cwd, 'controllers/SdkController.mjs');
  const load = { group: 'Sdk', file: 'SdkController.mjs', path, ok: true };
  const params = 'its params have no type';
  const unchecked = (reason: string) => ({ checked: '', unchecked: reason, undocumented: undefined });
  const operations = [
    { name: 'index', contract: unchecked(params), sendsAll: true },
    { name: 'created', contract: unchecked(params) },
    { name: 'patch', contract: unchecked('it has no annotation') },
  ];
  const notes = [
    { event: 'result-unfiltered', reason: 'a union' },
    { event: 'other', reason: 'no matter' },
  ] as unknown as NonNullable<LoadedGroup['notes']>;
  answerInspections(t, () => inspection({ groups: [{ ...load, operations, notes }] }));
  const { lines } = await examine(cwd);
  const at = 'controllers controllers/SdkController.mjs:';
  assert.deepEqual(lines, [
    `warning folder node_modules/gatefold: controllers import gatefold 0.0.1, and ${version()} runs them`,
    `warning ${at} results: 'declared' does not limit a union`,
    `note ${at} index, created: the path and query are not checked: its params have no type`,
    `note ${at} patch: the data is not checked: it has no annotation`,
    "note controllers controllers: undeclared fields of results go out (sdk): write results: 'declared' in service.ts",
  ]);
  answerInspections(t, () => {
    throw new Error('the code ended the process');
  });
  const failed = await examine(cwd);
  assert.deepEqual([failed.wrong, failed.lines[1]], [1, 'wrong folder the code ended the process']);
});

const NAME_RULE = 'its name is not a capital, then letters, digits, _ or -, then Controller.ts, .mjs or .js';

test('findLookAlikes returns each file that looks like a controller, with the reason', (t) => {
  const names = {
    'AController.ts': undefined,
    'lib.ts': undefined,
    'AController.js': undefined,
    'userController.ts': NAME_RULE,
    'user.controller.js': NAME_RULE,
    'UsersControllers.ts': NAME_RULE,
    'BController.mts': NAME_RULE,
    'BController.tsx': NAME_RULE,
    '1Controller.ts': NAME_RULE,
    'BController.py': NAME_RULE,
    'T08Controler.ts': undefined,
    'CostRoller.ts': undefined,
    'BController.test.ts': undefined,
    'BController.d.ts': undefined,
    'BController.ts~': undefined,
    '.BController.ts.swp': undefined,
    'admin/CController.ts': 'it is in a subfolder, which serves with folders: true in the service file',
    'admin/deep/CController.ts': 'it is in a subfolder, where controllers are not looked for',
    'Admin/CController.ts': 'it is in a subfolder, where controllers are not looked for',
    'admin/notes.ts': undefined,
    'admin/service.ts': undefined,
    '.git/DController.ts': undefined,
    'node_modules/x/EController.ts': undefined,
  };
  const dir = join(
    makeProject(t, Object.fromEntries(Object.keys(names).map((name) => [`controllers/${name}`, '']))),
    'controllers',
  );
  mkdirSync(join(dir, 'FController.ts'));
  symlinkSync('nowhere', join(dir, 'GController.ts'));
  const expected = {
    ...names,
    'FController.ts': 'it is a folder',
    'GController.ts': 'it is a link that leads to no file',
  };
  const found = findLookAlikes(dir);
  assert.deepEqual(
    Object.fromEntries(found.map(({ file, reason }) => [file, reason])),
    Object.fromEntries(Object.entries(expected).filter(([, reason]) => reason !== undefined)),
  );
});

test('doctor reports controllers that do not load, or look like one, or have no operation', async (t) => {
  const cwd = makeProject(t, {
    'controllers/BadController.mjs': '\nthrow new Error("no \u001b[31mluck");\n',
    'controllers/FaultController.mjs':
      'setTimeout(() => {\n  throw new Error("late");\n}, 0);\nawait new Promise((resolve) => setTimeout(resolve, 50));\nexport default {};\n',
    'controllers/zController.ts': '',
  });
  const { lines, wrong, warnings } = await examine(cwd);
  assert.deepEqual([wrong, warnings], [2, 2]);
  for (const line of [
    `warning controllers controllers/zController.ts: it is not a controller: ${NAME_RULE}`,
    'wrong controllers controllers/BadController.mjs:2: it does not load: Error: no ',
    'wrong controllers controllers/FaultController.mjs:2: it throws outside of any request: Error: late',
    'warning controllers controllers/FaultController.mjs: it has no operation, so every request to it fails',
  ]) {
    has(lines, line);
  }
  const { out, code } = await runHere(run, [], { cwd, isTTY: true });
  assert.equal(code, 1);
  assert.ok(out.includes('no \u{fffd}[31mluck'), 'doctor replaces escape sequences in the error of a controller');
  assert.ok(out.includes('\u001b[31mwrong  '));
  assert.ok(out.trimEnd().endsWith('\u001b[31m2 things are wrong, 2 warnings.\u001b[39m'));
});

describe('doctor on credentials', () => {
  const row = (fields: object) => ({ hash: HASH, ...fields });
  const table = (rows: object[]) => ({ ...SDK, 'data/production.json': JSON.stringify({ production: rows }) });

  test('reports invalid, expired and soon expiring credentials by name, and no revoked credential', async (t) => {
    const cwd = makeProject(
      t,
      table([
        row({ id: 'aaaaaaaaaaaa', name: 'fine' }),
        row({ id: 'bbbbbbbbbbbb', name: 'bad', hash: 'sha256:short' }),
        row({ id: 'cccccccccccc', name: 'expired', expires_at: '2025-12-31' }),
        row({ id: 'dddddddddddd', name: 'soon', expires_at: '2026-01-31T00:00:00Z' }),
        row({ id: 'eeeeeeeeeeee', name: 'later', expires_at: '2026-01-31T00:00:01Z' }),
        row({ id: 'ffffffffffff', name: 'revoked', revoked_at: '2025-12-31', expires_at: '2025-12-31' }),
        row({ id: 'gggggggggggg', name: 'lost', handler: 'nowhere' }),
        { name: 'literal', authorization: 'Basic hunter2' },
      ]),
    );
    chmodSync(join(cwd, 'data/production.json'), 0o644);
    const { lines, wrong, warnings, out } = await examineBeside(cwd);
    assert.deepEqual([wrong, warnings], [3, 3]);
    const at = 'credentials data/production.json: ';
    assert.deepEqual(
      lines.filter((line) => line.includes(' credentials ')),
      [
        `warning ${at}it has literal header values, and others than its owner can read it`,
        `wrong ${at}credential "expired" (cccccccccccc) expired at 2025-12-31T00:00:00.000Z; revoke it when it is no longer wanted`,
        `warning ${at}credential "soon" (dddddddddddd) expires at 2026-01-31T00:00:00.000Z, within 30 days`,
        `warning ${at}credential "literal" (literal) carries a literal header value; issue one that is kept as a hash`,
        `wrong ${at}credential "bad" (bbbbbbbbbbbb) is invalid and was skipped: "hash" is not "sha256:" and 43 characters of base64url`,
        `wrong ${at}credentials name the handler group nowhere, which is not in the folder`,
      ],
    );
    assert.ok(!out.includes('hunter2') && !out.includes('AAAA'));
  });

  test('reports a copy of a store that is read without STORE', async (t) => {
    const text = JSON.stringify({ store: { version: 'a/b/1' }, production: [] });
    const { lines } = await examineBeside(makeProject(t, { ...SDK, 'data/production.json': text }));
    has(lines, "warning credentials data/production.json: it is a copy of a store's table; set STORE");
  });

  test('reports credentials that may call nothing, and fields that nothing reads', async (t) => {
    const rows = [
      row({ id: 'aaaaaaaaaaaa', name: 'typo', groups: ['sdk'], methods: ['GTE', 'GET'], team: 'a' }),
      row({ id: 'bbbbbbbbbbbb', name: 'none', groups: [], note: 'x' }),
      row({ id: 'cccccccccccc', name: 'no method', methods: [], note: 'y' }),
      row({ id: 'dddddddddddd', name: 'off', disabled: true }),
      row({ id: 'eeeeeeeeeeee', name: 'old', revoked_at: '2025-01-01', revoked_by: 'Ann' }),
      row({ name: 'no id' }),
    ];
    const { lines } = await examineBeside(makeProject(t, table(rows)));
    const at = 'credentials data/production.json: ';
    assert.deepEqual(
      lines.filter((line) => line.includes(' credentials ')),
      [
        `warning ${at}credential "typo" (aaaaaaaaaaaa) is for GTE, a method that no request has`,
        `warning ${at}credential "none" (bbbbbbbbbbbb) may call nothing: its list of groups is empty`,
        `warning ${at}credential "no method" (cccccccccccc) may call nothing: its list of methods is empty`,
        `wrong ${at}credential "off" (dddddddddddd) is invalid and was skipped: its field "disabled" has no effect; these restrict it: expires_at, revoked_at, methods, groups, scopes, limit, handler`,
        `wrong ${at}credential "no id" is invalid and was skipped: "id" is not 12 letters and digits`,
        `note ${at}nothing reads these fields of its rows: team, note`,
      ],
    );
  });

  test('reports 50 findings of a kind, and the number of the others', async (t) => {
    const id = (i: number) => `x${String(i).padStart(11, '0')}`;
    const many = Array.from({ length: 60 }, (_, i) =>
      row({ id: id(i), name: id(i), expires_at: i < 55 ? '2025-01-01' : '2026-01-02' }),
    );
    const { lines, wrong } = await examineBeside(makeProject(t, table(many)));
    assert.equal(wrong, 51);
    has(lines, 'wrong credentials data/production.json: 10 more of the kind');
    const soon = many.map((fields) => ({ ...fields, expires_at: '2026-01-02', team: 'a' }));
    const later = await examineBeside(makeProject(t, table(soon)));
    assert.deepEqual([later.wrong, later.warnings], [0, 51]);
    has(later.lines, 'note credentials data/production.json: nothing reads these fields of its rows: team');
  });

  test('reports an invalid session key', async (t) => {
    const cwd = makeProject(t, { ...SDK, 'data/session.key': 'hunter2' });
    const { lines, wrong, out } = await examineBeside(cwd);
    assert.equal(wrong, 1);
    has(lines, 'wrong credentials Cannot use data/session.key: it has 7 characters');
    assert.ok(!out.includes('hunter2'));
    const given = await examineBeside(cwd, [], { SESSION_KEY: 'correct-horse-battery-staple-0123' });
    assert.equal(given.wrong, 0);
  });
});

test('doctor reports each skipped identity provider, with the reason', async (t) => {
  const provider = { name: 'example', issuer: 'https://id.example', client_ids: ['abc'] };
  const cwd = makeProject(t, {
    ...SDK,
    'data/identity-providers.json': JSON.stringify([
      provider,
      {
        ...provider,
        name: 'staff',
        issuer: 'https://staff.example',
        registration: { emails: ['someone@staff.example'] },
      },
      { ...provider, name: 'clear', issuer: 'http://id.example' },
    ]),
  });
  const { lines, wrong, out } = await examineBeside(cwd);
  assert.equal(wrong, 1);
  assert.deepEqual(
    lines
      .filter((line) => line.includes(' identity '))
      .map((line) => line.replace(' data/identity-providers.json:', '')),
    [
      'wrong identity provider "clear" was skipped: its issuer is not an https address (http: on loopback alone) without query or fragment',
    ],
  );
  assert.ok(!out.includes('someone@'));
  const broken = await examineBeside(makeProject(t, { ...SDK, 'data/identity-providers.json': '{' }));
  assert.equal(broken.wrong, 1);
  has(broken.lines, 'wrong identity Cannot read the identity providers: data/identity-providers.json: it is not JSON');
});

describe('doctor on traces', () => {
  const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://key@collector.example:4318?token=secret' };
  const rows: Record<string, { env: Record<string, string>; found: readonly string[]; wrong?: number }> = {
    'reports nothing without a variable': { env: {}, found: [] },
    'reports nothing while only OTEL_SERVICE_NAME is set': { env: { OTEL_SERVICE_NAME: 'shop' }, found: [] },
    'reports nothing with a collector': { env: ENDPOINT, found: [] },
    'reports an unsupported protocol as wrong': {
      env: { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
      found: [
        'wrong traces no request is traced: OTEL_EXPORTER_OTLP_PROTOCOL is not http/json, the only protocol here',
      ],
      wrong: 1,
    },
    'reports a missing certificate file as wrong': {
      env: { ...ENDPOINT, OTEL_EXPORTER_OTLP_CERTIFICATE: '/nowhere.pem' },
      found: ['wrong traces no request is traced: OTEL_EXPORTER_OTLP_CERTIFICATE names a file'],
      wrong: 1,
    },
    'reports nothing when OTEL_SDK_DISABLED turns traces off': {
      env: { ...ENDPOINT, OTEL_SDK_DISABLED: 'true' },
      found: [],
    },
    'warns about an unknown sampler': {
      env: { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'sometimes' },
      found: ['warning traces OTEL_TRACES_SAMPLER: it is none of always_on'],
    },
    'warns about a sampler without a collector': {
      env: { OTEL_TRACES_SAMPLER: 'always_on' },
      found: [
        'warning traces OTEL_TRACES_SAMPLER: no request is traced, because OTEL_EXPORTER_OTLP_ENDPOINT is not set',
      ],
    },
    'reports nothing when OTEL_TRACES_EXPORTER is none': {
      env: { OTEL_TRACES_EXPORTER: 'none', OTEL_TRACES_SAMPLER: 'always_on' },
      found: [],
    },
  };
  for (const [name, { env, found, wrong: mistakes = 0 }] of Object.entries(rows))
    test(name, async (t) => {
      const { lines, wrong, out } = await examineBeside(makeProject(t, SDK), [], env);
      const about = lines.filter((line) => line.includes(' traces '));
      assert.equal(about.length, found.length, about.join('\n'));
      for (const text of found) has(about, text);
      assert.equal(wrong, mistakes);
      assert.ok(!out.includes('secret') && !out.includes('key@'));
    });
});
