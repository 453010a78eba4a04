// Reads files of variables such as `.env`: the one function for the server and for all commands. So a command that
// changes keys and the service have the same STORE.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import * as util from 'node:util';
import { parseCommandLine, START_FLAGS } from './config.ts';
import { explainFailure, unlessMissing } from './failure.ts';
import { isKeyText } from './setting-values.ts';
import { settingRows } from './settings.ts';

/** The word for the files that `gatefold dev` reads. The first file wins, and each may be missing. */
export const DEV = 'dev';
const DEV_FILES = ['.env.local', '.env'];

const REFUSED = new Map([
  ['NODE_ENV', 'gatefold dev sets it, and every other start takes it from the environment'],
  ['NODE_OPTIONS', 'Node reads it before any file, so set it in the environment'],
  ['ENV_FILE', 'a file cannot name the file to read'],
]);

type ParseEnv = typeof util.parseEnv | undefined;
type Environment = Readonly<Record<string, string | undefined>>;

/** @returns the value of ENV_FILE, as a flag or as a variable. @throws SettingsError for a wrong command line */
export function envFileOf(argv: readonly string[], env: Environment): string {
  const { values } = parseCommandLine(argv, START_FLAGS);
  return (values['env-file'] as string | undefined) ?? (env.ENV_FILE || (values.dev ? DEV : 'off'));
}

export function envFilePaths(envFile: string, cwd = process.cwd()): string[] {
  const names = envFile === DEV ? DEV_FILES : envFile === '' || envFile === 'off' ? [] : [envFile];
  if (isKeyText(envFile)) throw new Error('ENV_FILE: the value is not the path of a file');
  return names.map((name) => resolve(cwd, name));
}

/** Adds the variables of files to a copy of an environment. A set variable stays. @throws Error that names the file */
export function withEnvFiles(env: Environment, envFile: string, cwd?: string, parse: ParseEnv = util.parseEnv) {
  const variables: Record<string, string | undefined> = { ...env };
  for (const path of envFilePaths(envFile, cwd)) {
    const read = () => readFileSync(path, 'utf8');
    const readMissing = () => unlessMissing(read, undefined);
    const text = explainFailure(`ENV_FILE: cannot read ${path}`, envFile === DEV ? readMissing : read);
    if (text === undefined) continue;
    if (typeof parse !== 'function')
      throw new Error(`${path}: Node ${process.versions.node} cannot read it: use 20.12 or newer, or ENV_FILE=off`);
    // PowerShell writes UTF-16 by default, in which no line sets a variable.
    if (text.includes('\0')) throw new Error(`ENV_FILE: cannot read ${path}: it is not UTF-8. Save it as UTF-8`);
    const values = parse(text.replace(/^\uFEFF/, ''));
    const lost = settingsIn(text).find((name) => !Object.hasOwn(values, name));
    if (lost !== undefined)
      throw new Error(
        `${path}: the line of ${lost} sets nothing. Write ${lost}=value outside of quotes, without spaces around this line and the one above it`,
      );
    for (const [name, value] of Object.entries(values)) {
      const reason = REFUSED.get(name.toUpperCase());
      if (reason !== undefined) throw new Error(`${path}: ${name} is refused here: ${reason}`);
      variables[name] ??= value;
    }
  }
  return variables;
}

/**
 * Returns the settings that have a line. Node loses some: Node 20 the one after an indented comment, and later versions
 * the one after `NAME= `. All ignore `NAME: value` and `NAME value`. A service without its RATE_LIMIT must not start.
 */
function settingsIn(text: string): string[] {
  const names = settingRows({ cores: 1 }).map(({ name }) => name);
  const line = new RegExp(
    `^[\\uFEFF \\t]*(?:(?:export|set)[ \\t]+)?(${names.join('|')})(?:[ \\t]*[=:]|[ \\t]+[^\\s#])`,
    'gm',
  );
  return Array.from(text.matchAll(line), ([, name = '']) => name);
}
