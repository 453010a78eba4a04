// Runs each block of the README in its order, in a folder beside a checkout, as a reader would.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { parseSettings } from '../src/base/config.ts';
import { startService } from './support/cluster-server.ts';

const ROOT = resolve(import.meta.dirname, '..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const BLOCKS = Array.from(README.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm), ([, kind = '', text = '']) => ({
  kind,
  text,
}));

/** Whether curl is installed and has the option `--json` (7.82 and later). */
const hasCurl = (() => {
  try {
    const [, major = 0, minor = 0] =
      /^curl (\d+)\.(\d+)/.exec(execFileSync('curl', ['--version'], { encoding: 'utf8' })) ?? [];
    return Number(major) > 7 || (Number(major) === 7 && Number(minor) >= 82);
  } catch {
    return false;
  }
})();

/** Replaces the parts of an answer that differ in each run. */
const steady = (text: string) =>
  text.replace(/"timestamp":\d+/g, '"timestamp":0').replace(/"request_id":"[^"]*"/g, '"request_id":"-"');

/** Runs each curl command of a block, and compares the output with the next line. Returns the number of commands. */
function runCurls(block: string, port: number): number {
  const curls = Array.from(block.matchAll(/^\$ (curl .*)\n(.*)$/gm));
  for (const [, command = '', shown = ''] of curls) {
    const here = command.replace('curl ', 'curl -sS ').replace('localhost:3000', `127.0.0.1:${port}`);
    assert.equal(steady(execFileSync('sh', ['-c', here], { encoding: 'utf8' })), steady(shown), command);
  }
  return curls.length;
}

test('the README shows in its first 25 lines how to start, call and test the service', () => {
  const head = README.split('\n').slice(0, 25).join('\n');
  for (const needed of ['npm ci && npm start', '$ curl http://localhost:3000/api/test\n{', 'npm ci && npm test'])
    assert.ok(head.includes(needed), needed);
});

test('the README names npm scripts that exist', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  for (const [, name] of README.matchAll(/npm (?:run )?(start|test|build|dev|bench|typecheck)\b/g))
    assert.ok(scripts[name as string] !== undefined, String(name));
});

test('the package has no run-time dependency, and its lock file has no download URL', () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, unknown>;
  assert.equal(manifest.dependencies, undefined);
  assert.doesNotMatch(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'), /"resolved"/);
});

describe('the code blocks of the README', {
  skip: hasCurl ? false : 'curl is not installed, or has no --json',
  timeout: 200_000,
}, () => {
  test('run in their order and give the output that the README shows', async (t) => {
    const reader = createReader(t);
    const service = await startService(t, { dir: join(ROOT, 'controllers'), env: { WORKERS: '1' } });
    let project = 0;
    for (const { kind, text } of BLOCKS) {
      const [first = ''] = text.split('\n');
      if (kind === 'console') assert.ok(runCurls(text, project || service.port) > 0);
      // .ci/package and test/build.test.ts run the commands that install and build. Here they would replace dist while
      // other tests use it.
      else if (/^npm ci && npm (start|test|run build) ?/.test(first)) continue;
      // test/slow/deploy.slow.ts runs this command.
      else if (first.startsWith('npx gatefold deploy ')) continue;
      else if (first.startsWith('node dist/cli.js init ')) project = await reader.serve(first);
      else if (first.includes('DOMAINS=')) assert.deepEqual(settingsOf(first).domains, ['api.example.com']);
      else if (kind === 'ts') assert.deepEqual(reader.compile(text), squigglesIn(text));
      else if (/^(cat >|npx gatefold) /.test(first)) reader.run(text);
      else assert.fail(`nothing runs this block: ${text}`);
    }
    assert.ok(project > 0);
    assert.match(reader.said(), /^gfk_\w+$/m);
    assert.match(reader.said(), /# pass 5|ℹ pass 5/);
  });
});

/**
 * Returns the compiler errors that a block shows: `//  ~~~ message` below a line marks the refused part of that line.
 */
function squigglesIn(text: string): string[] {
  return text.split('\n').flatMap((line, i) => {
    const [, before = '', message] = /^(\/\/ +)~+ (.*)$/.exec(line) ?? [];
    return message === undefined ? [] : [`(${i},${before.length + 1}): ${message}`];
  });
}

function settingsOf(command: string) {
  const env = Object.fromEntries(
    Array.from(command.matchAll(/\b([A-Z_]+)=(\S+)/g), ([, name = '', value = '']) => [name, value]),
  );
  return parseSettings(env, [], { cores: 1 });
}

/**
 * Creates a project folder beside a checkout, as a reader would. Only `npm install` is replaced: it installs this
 * checkout and its packages instead of those of the registry.
 */
function createReader(t: TestContext) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-readme-')));
  let server: ChildProcess | undefined;
  t.after(async () => {
    if (server?.pid !== undefined && server.exitCode === null) {
      // The output is closed when the last process behind npm has ended. Until then, they write to the folder.
      const gone = once(server, 'close');
      process.kill(-server.pid, 'SIGTERM');
      await gone;
    }
    rmSync(home, { recursive: true, force: true, maxRetries: 3 });
  });
  const checkout = join(home, 'checkout');
  const bin = join(home, 'bin');
  mkdirSync(checkout);
  mkdirSync(bin);
  symlinkSync(join(ROOT, 'dist'), join(checkout, 'dist'));
  const npm = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim();
  const modules = ['typescript', 'tsx', '@types/node'].map(
    (name) => `ln -s '${ROOT}/node_modules/${name}' node_modules/${name}`,
  );
  const install = [
    'mkdir -p node_modules/@types node_modules/.bin',
    `ln -s '${ROOT}' node_modules/gatefold`,
    ...modules,
  ].join('; ');
  const command = `printf '#!/bin/sh\\nexec node "${ROOT}/dist/cli.js" "$@"\\n' > node_modules/.bin/gatefold; chmod +x node_modules/.bin/gatefold`;
  writeFileSync(
    join(bin, 'npm'),
    `#!/bin/sh\nif [ "$1" = install ]; then ${install}; ${command}; else exec '${npm}' "$@"; fi\n`,
    {
      mode: 0o755,
    },
  );
  // npx starts the same file, after half a second of its own work.
  writeFileSync(join(bin, 'npx'), `#!/bin/sh\nname=$1; shift; exec "node_modules/.bin/$name" "$@"\n`, { mode: 0o755 });
  const { NODE_TEST_CONTEXT, NODE_OPTIONS, ...inherited } = process.env;
  const env = {
    ...inherited,
    PATH: [bin, dirname(process.execPath), process.env.PATH].join(':'),
    PORT: '0',
    HOST: '127.0.0.1',
    WORKERS: '1',
  };
  let said = '';
  return {
    said: () => said,
    run(block: string): void {
      said += execFileSync('sh', ['-e', '-c', block], { cwd: join(home, 'my-api'), env, encoding: 'utf8' });
    },
    /** Compiles a front end beside the project. Returns the errors of it and of the client: `(line,column): message`. */
    compile(source: string): string[] {
      const web = join(home, 'web');
      mkdirSync(join(web, 'node_modules'), { recursive: true });
      rmSync(join(web, 'node_modules/gatefold'), { force: true });
      symlinkSync(ROOT, join(web, 'node_modules/gatefold'));
      writeFileSync(join(web, 'main.ts'), source);
      const options = {
        module: 'esnext',
        moduleResolution: 'bundler',
        target: 'es2020',
        lib: ['es2020', 'dom'],
        types: [],
      };
      const compilerOptions = {
        ...options,
        strict: true,
        noEmit: true,
        allowImportingTsExtensions: true,
        skipDefaultLibCheck: true,
      };
      writeFileSync(join(web, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));
      const { stdout } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', web], { encoding: 'utf8', cwd: web });
      return Array.from(
        stdout.matchAll(/^(?:main|\S*\/client\S*)\.ts(\(\d+,\d+\)): error TS\d+(: .*)$/gm),
        ([, at, said]) => `${at}${said}`,
      );
    },
    /** Runs the service until the end of the test, and returns its port. */
    async serve(line: string): Promise<number> {
      const child = spawn('sh', ['-c', line], {
        cwd: checkout,
        env,
        stdio: ['ignore', 'pipe', 'ignore'],
        detached: true,
      });
      server = child;
      return new Promise((resolve, reject) => {
        child.stdout.setEncoding('utf8').on('data', (chunk) => {
          said += chunk;
          const match = /^gatefold listening on http:\/\/\S+:(\d+)$/m.exec(said);
          if (match !== null) resolve(Number(match[1]));
        });
        child.on('close', () => reject(new Error(said)));
      });
    },
  };
}
