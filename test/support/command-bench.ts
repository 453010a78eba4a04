// Helpers for tests of commands: a project folder, a command that runs in this process with its own streams, and a
// command that runs as a process.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import type { CommandIo, ExitCode } from '../../src/operate/cli/command.ts';
import { LOADER, modulePath } from './own-modules.ts';

export const CLI = modulePath('src/bin/cli');

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The text of each file by its name. The files are written to a new folder with a package.json. */
export function makeProject(
  test: { after(done: () => void): void },
  files: Readonly<Record<string, string>> = {},
): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-command-')));
  test.after(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, 'controllers'));
  mkdirSync(join(root, 'data'));
  for (const [name, text] of Object.entries({ 'package.json': '{"type":"module"}', ...files })) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

type Run = (argv: readonly string[], io: CommandIo) => Promise<ExitCode>;

export async function runHere(
  run: Run,
  argv: readonly string[],
  io: Partial<CommandIo> & { readonly cwd: string },
): Promise<Ran> {
  let out = '';
  let err = '';
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      out += chunk;
      done();
    },
  });
  const stderr = new Writable({
    write(chunk, _encoding, done) {
      err += chunk;
      done();
    },
  });
  const code = await run(argv, { env: {}, stdin: Readable.from([]), stdout, stderr, isTTY: false, ...io });
  return { code, out, err };
}

export function runProcess(
  argv: readonly string[],
  options: { readonly cwd: string; readonly env?: Record<string, string> },
): Promise<Ran> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH ?? '', ...options.env };
    execFile(
      process.execPath,
      [...LOADER, CLI, ...argv],
      { cwd: options.cwd, env, timeout: 120_000 },
      (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err });
      },
    );
  });
}
