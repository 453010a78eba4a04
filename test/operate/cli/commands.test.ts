// The `gatefold` command as people use it: its first word, flags, streams and exit codes, in this process and as a
// process.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable, Writable } from 'node:stream';
import { describe, test } from 'node:test';
import { flagOf } from '../../../src/base/config.ts';
import { alignColumns, createInk, escapeInvisible, plain, shortPlace } from '../../../src/base/ink.ts';
import { settingRows } from '../../../src/base/settings.ts';
import { CommandError, type CommandIo, print, runCommand, UsageError } from '../../../src/operate/cli/command.ts';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { CLI, makeProject, runHere, runProcess } from '../../support/command-bench.ts';
import { LOADER } from '../../support/own-modules.ts';

const NAMES = ['serve', 'routes', 'doctor', 'new', 'credentials'];
const cwd = process.cwd();
const here = (argv: readonly string[], io: Partial<CommandIo> = {}) => runHere(runGatefold, argv, { cwd, ...io });

describe('gatefold', () => {
  for (const word of ['--help', '-h', 'help']) {
    test(`${word} names every command`, async () => {
      const { code, out, err } = await here([word]);
      assert.deepEqual([code, err], [0, '']);
      for (const name of NAMES) assert.match(out, new RegExp(`^  ${name} {2,}[A-Z]`, 'm'));
    });
  }

  test('--help of each command says what it does, and what each word and flag means', async () => {
    const described = async (words: readonly string[]): Promise<void> => {
      const { code, out, err } = await here([...words, '--help']);
      const name = ['gatefold', ...words].join(' ');
      assert.deepEqual([code, err], [0, ''], name);
      assert.match(out, /^Usage: gatefold[^\n]*\n\n[A-Z][^\n]{20,}\n/, name);
      const rows = Array.from(out.matchAll(/^ {2}(\S+(?: \S+)?) *(.*)$/gm), ([, word = '', text = '']) => ({
        word,
        text,
      }));
      for (const { word, text } of rows) assert.match(text, /^[A-Za-z].{9,}/, `${name} ${word}`);
      if (/ COMMAND /.test(out)) for (const { word } of rows) await described([...words, word]);
    };
    await described([]);
  });

  test('--version prints the version of package.json', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    for (const word of ['--version', '-v'])
      assert.deepEqual(await here([word]), { code: 0, out: `${version}\n`, err: '' });
  });

  const wrong: [argv: string[], err: string][] = [
    [[], 'gatefold: a command is missing; see gatefold --help\n'],
    [['fly'], 'gatefold: unknown command "fly"; see gatefold --help\n'],
    [['inspect-folder'], 'gatefold: unknown command "inspect-folder"; see gatefold --help\n'],
    [['routes', '--fly'], 'gatefold routes: --fly: unknown flag; see gatefold routes --help\n'],
    [['routes', 'all'], 'gatefold routes: too many arguments; see gatefold routes --help\n'],
    [['routes', '--json', '--json'], 'gatefold routes: --json: given twice; see gatefold routes --help\n'],
    [['routes', '--port', '1', '--port', '1'], 'gatefold routes: --port: given twice; see gatefold routes --help\n'],
    [
      ['routes', '--workers=0'],
      'gatefold routes: --workers: "0" is not a whole number from 1 to 1024; see gatefold routes --help\n',
    ],
    [['new'], 'gatefold new: missing GROUP; see gatefold new --help\n'],
  ];
  for (const [argv, err] of wrong)
    test(`refuses the wrong usage: gatefold ${argv.join(' ')}`, async () =>
      assert.deepEqual(await here(argv), { code: 2, out: '', err }));

  test('refuses an invalid environment variable in one line', async () => {
    const { code, out, err } = await here(['routes'], { env: { PORT: 'x\ny' } });
    assert.deepEqual([code, out], [1, '']);
    assert.equal(err, 'gatefold routes: PORT: "x\\ny" is not a whole number from 0 to 65535\n');
  });

  for (const name of NAMES) {
    test(`${name} --help prints its usage`, async () => {
      const { code, out, err } = await here([name, '--help']);
      assert.deepEqual([code, err], [0, '']);
      assert.ok(out.startsWith(`Usage: gatefold ${name}`));
      assert.doesNotMatch(out, /\n\n\n/, 'a line is missing');
    });
  }

  test('each command and each subcommand has a help, with a text for each flag', async () => {
    const commandsOf = (out: string) =>
      [...out.matchAll(/^ {2}([a-z][a-z-]*) {2,}(.*)$/gm)].map(([, name]) => name ?? '');
    const { out } = await here(['--help']);
    assert.match(out, /^Usage: gatefold COMMAND \[OPTIONS\]\n\n[A-Z].*\.\n\n/);
    assert.match(out, /\n\ngatefold COMMAND --help shows its flags\.\n$/);
    const paths = commandsOf(out).map((name) => [name]);
    assert.ok(paths.length > 10);
    for (const path of paths) {
      const { code, out } = await here([...path, '--help']);
      const command = path.join(' ');
      assert.equal(code, 0, command);
      if (out.includes(`gatefold ${command} COMMAND --help shows its flags.`)) {
        assert.ok(commandsOf(out).length > 1, command);
        paths.push(...commandsOf(out).map((name) => [...path, name]));
        continue;
      }
      if (command === 'serve' || command === 'dev') {
        assert.match(out, /^Usage: gatefold \w+ \[--SETTING VALUE\]…\n\n[A-Z]/);
        assert.match(
          out,
          /Each flag is also an environment variable; the flag wins\.\n\n {2}FLAG +VARIABLE +DEFAULT\n/,
        );
        continue;
      }
      assert.match(out, new RegExp(`^Usage: gatefold ${command} [A-Z[].*\\n\\n[A-Z].*\\.\\n\\n {2}--`));
      assert.match(out, /\n\nThe other settings of the server are flags here, too\.\n$/);
      const flags = [...out.matchAll(/^ {2}--(\S.*)$/gm)].map(([, line = '']) => line);
      for (const line of flags) assert.match(line, /^[a-z-]+(?: [A-Z]+)? {2,}[A-Z].+/, command);
      for (const flag of ['json ', 'controllers-dir DIR ', 'data-dir DIR ', 'help '])
        assert.ok(
          flags.some((line) => line.startsWith(flag)),
          `${command}: ${flag}`,
        );
    }
  });

  test('a command names its operands in its usage', async () => {
    assert.match((await here(['deploy', '--help'])).out, /^Usage: gatefold deploy HOST\[:DIR\]… \[OPTIONS\]\n/);
  });

  test('serve --help lists every setting', async () => {
    const { out } = await here(['serve', '-h']);
    for (const { name } of settingRows({ cores: 1 })) assert.ok(out.includes(`  ${flagOf(name)} `), name);
  });

  test('credentials refuses an unknown subcommand and points at its own help', async () => {
    const { code, err } = await here(['credentials', 'fly']);
    assert.equal(code, 2);
    assert.match(err, /^gatefold credentials: unknown command "fly"; see gatefold credentials --help\n$/);
  });
});

describe('docs/COMMANDS.md', () => {
  test('names every command, and every flag of routes, doctor and new', async () => {
    const text = readFileSync(new URL('../../../docs/COMMANDS.md', import.meta.url), 'utf8');
    for (const name of NAMES) assert.ok(text.includes(`gatefold ${name}`), name);
    for (const name of ['routes', 'doctor', 'new']) {
      const { out } = await here([name, '--help']);
      for (const [flag] of out.matchAll(/^ {2}(--[a-z-]+)/gm)) assert.ok(text.includes(flag.trim()), flag);
    }
  });

  test('is not alone: each gatefold in the code of a document has a command', async () => {
    const docs = new URL('../../../docs/', import.meta.url);
    const names = Array.from((await here(['--help'])).out.matchAll(/^ {2}([a-z]+) {2}/gm), ([, name]) => name);
    const call = /^(?:\$ |[A-Z_]+=\S+ )*(?:npx |node_modules\/\.bin\/)gatefold\b ?(\w*)/gm;
    for (const page of ['../README.md', ...readdirSync(docs)])
      for (const [line, name] of readFileSync(new URL(page, docs), 'utf8').matchAll(call))
        assert.ok(names.includes(name), `${page}: ${line}`);
  });
});

describe('runCommand', () => {
  const command = (run: () => never) => ({ name: 'x', about: 'X', run });
  const rows: [name: string, error: unknown, code: number, err: string][] = [
    ['a CommandError', new CommandError('no\n way'), 1, 'gatefold x: no way\n'],
    ['a UsageError, with a hint at --help,', new UsageError('no'), 2, 'gatefold x: no; see gatefold x --help\n'],
    [
      'an unexpected error, without its stack,',
      new TypeError('x is not a function'),
      1,
      'gatefold x: x is not a function\n',
    ],
    ['a thrown string', 'thrown', 1, 'gatefold x: thrown\n'],
    ['a message with an escape sequence', new CommandError('\u001b[2J'), 1, 'gatefold x: \u{fffd}[2J\n'],
  ];
  for (const [name, error, code, err] of rows) {
    test(`prints ${name} in one line`, async () => {
      const fail = () => {
        throw error;
      };
      assert.deepEqual(await runHere((argv, io) => runCommand(command(fail), argv, io), [], { cwd }), {
        code,
        out: '',
        err,
      });
    });
  }
});

describe('print', () => {
  const failing = (code: string) =>
    new Writable({
      write(_chunk, _encoding, done) {
        done(Object.assign(new Error(code), { code }));
      },
    });
  test('succeeds when the reader has closed the pipe', async () =>
    assert.equal(await print(failing('EPIPE'), 'x', 0), 0));
  test('returns exit code 1 when the write fails', async () => assert.equal(await print(failing('ENOSPC'), 'x', 0), 1));
  test('fails on a closed pipe when the text cannot be printed again', async () => {
    await assert.rejects(
      print(failing('EPIPE'), 'x', 0, 'start again'),
      new CommandError('Cannot print: EPIPE; start again'),
    );
  });
});

describe('ink', () => {
  const rows: [name: string, isTTY: boolean, env: Record<string, string>, coloured: boolean][] = [
    ['a terminal has colours', true, {}, true],
    ['a pipe has no colours', false, {}, false],
    ['NO_COLOR turns colours off', true, { NO_COLOR: '1' }, false],
    ['an empty NO_COLOR keeps colours', true, { NO_COLOR: '' }, true],
    ['a dumb terminal has no colours', true, { TERM: 'dumb' }, false],
  ];
  for (const [name, isTTY, env, coloured] of rows) {
    test(`createInk: ${name}`, () =>
      assert.equal(createInk({ isTTY, env }).red('x'), coloured ? '\u001b[31mx\u001b[39m' : 'x'));
  }

  test('alignColumns, plain and escapeInvisible replace control characters; shortPlace shortens paths', () => {
    assert.deepEqual(
      alignColumns([
        ['a', 'bb', 'c'],
        ['aaa', 'b\n', 'cc'],
      ]),
      [
        ['a  ', 'bb', 'c'],
        ['aaa', 'b\u{fffd}', 'cc'],
      ],
    );
    assert.equal(plain('a\u202eb'), 'a\u{fffd}b');
    const json = JSON.stringify('a\u009b\u202e\u{e0001}é');
    assert.equal(escapeInvisible(json), '"a\\u009b\\u202e\\udb40\\udc01é"');
    assert.equal(JSON.parse(escapeInvisible(json)), JSON.parse(json));
    assert.equal(shortPlace('/srv/app/x.ts:1', '/srv/app'), 'x.ts:1');
    assert.equal(shortPlace('/srv/lib/x.ts:1', '/srv/app'), '/srv/lib/x.ts:1');
    assert.equal(shortPlace('/srv/app', '/srv/app'), '/srv/app');
  });
});

describe('gatefold as a process', () => {
  const files = { 'controllers/PlainController.mjs': 'export default {\n  index: () => ({ ok: true }),\n};\n' };

  test('routes, doctor and new print results and return exit codes', async (t) => {
    const project = makeProject(t, files);
    const routes = await runProcess(['routes'], { cwd: project });
    assert.deepEqual([routes.code, routes.err], [0, '']);
    assert.match(routes.out, /^GET,HEAD +\/api\/plain +index +controllers\/PlainController\.mjs$/m);
    assert.ok(!routes.out.includes('\u001b'));
    const doctor = await runProcess(['doctor'], { cwd: project, env: { PORT: 'x' } });
    assert.equal(doctor.code, 1);
    const made = await runProcess(['new', 'plain'], { cwd: project });
    assert.equal(made.code, 1);
    assert.match(
      made.err,
      /^gatefold new: Cannot make .*PlainController\.ts: PlainController\.mjs already serves that group\n$/,
    );
    assert.equal((await runProcess(['fly'], { cwd: project })).code, 2);
  });

  test('serve --help prints no stack when the reader closes the pipe', async (t) => {
    const child = spawn(process.execPath, [...LOADER, CLI, 'serve', '--help'], {
      cwd: makeProject(t),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    let err = '';
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      err += chunk;
    });
    const [code] = (await once(child, 'close')) as [number];
    assert.deepEqual([code, err], [0, '']);
  });

  test('a signal to routes also ends the process of a controller that blocks', async (t) => {
    const spin =
      'import { writeFileSync, renameSync } from "node:fs"; writeFileSync("pid.part", String(process.pid)); renameSync("pid.part", "pid"); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);';
    const project = makeProject(t, { 'controllers/SpinController.mjs': spin });
    const child = spawn(process.execPath, [...LOADER, CLI, 'routes'], { cwd: project, stdio: 'ignore' });
    const pid = await until(() =>
      existsSync(join(project, 'pid')) ? Number(readFileSync(join(project, 'pid'), 'utf8')) : undefined,
    );
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'close'), [null, 'SIGTERM']);
    await until(() => (isAlive(pid) ? undefined : true));
  });

  test('serve answers requests until a signal ends it', async (t) => {
    const project = makeProject(t, files);
    const env = { PATH: process.env.PATH ?? '', LOG_LEVEL: 'error', WORKERS: '1' };
    const argv = [...LOADER, CLI, 'serve', '--port', '0', '--host=127.0.0.1', '--data-dir', project];
    const child = spawn(process.execPath, argv, { cwd: project, env, stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const url = /^gatefold listening on (http:\/\/127\.0\.0\.1:\d+)$/.exec(line)?.[1];
    const answer = await fetch(`${url}/api/plain`, { headers: { connection: 'close' } });
    assert.deepEqual(await answer.json(), { ok: true });
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'close'), [0, null]);
  });

  const refusals: [name: string, argv: string[], err: RegExp][] = [
    ['an unknown flag', ['--json'], /^gatefold: --json: unknown flag\n$/],
    [
      'a missing controllers folder',
      ['--controllers-dir', 'nowhere', '--log-level', 'silent'],
      /^gatefold: Cannot read the controllers folder \S*\/nowhere: /,
    ],
  ];
  for (const [name, argv, err] of refusals) {
    test(`serve refuses ${name} with exit code 1`, async (t) => {
      const ran = await runProcess(['serve', ...argv], { cwd: makeProject(t) });
      assert.deepEqual([ran.code, ran.out], [1, '']);
      assert.match(ran.err, err);
    });
  }
});

async function until<T>(look: () => T | undefined): Promise<T> {
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie has ended, too.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test('credentials check reads a token from standard input', async (t) => {
  const { code, out } = await here(['credentials', 'check', '--data-dir', makeProject(t)], {
    stdin: Readable.from(['nonsense']),
  });
  assert.equal(code, 1);
  assert.match(out, /this is not a token of Gatefold/);
});
