// `gatefold doctor` reports what stops the service, will soon stop it, or is a risk, one finding a line. No finding has
// a secret, a hash, a header value or an e-mail address.
import { existsSync, mkdtempSync, rmdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { flagOf } from '../../base/config.ts';
import { FALLBACK, SERVICE, urlNameOf } from '../../base/group-name.ts';
import { ignoredVariables } from '../../base/ignored-variables.ts';
import { alignColumns, type Ink, shortPlace } from '../../base/ink.ts';
import { createLog } from '../../base/log.ts';
import { trustedMode } from '../../base/system.ts';
import { asksForTraces } from '../../base/trace-switch.ts';
import { createProviders } from '../../callers/identity/providers.ts';
import { A_HANDLER } from '../../groups/mount.ts';
import { findLookAlikes } from '../../live/load/look-alikes.ts';
import { WRITABLE_BY_EVERYONE } from '../../live/load/naming.ts';
import { findOtherPackage } from '../../live/load/own-package.ts';
import { hasServiceMark } from '../../live/supervisor/service-mark.ts';
import { version } from '../../own-files.ts';
import { readTraceSettings } from '../trace/environment.ts';
import type { Answer, Command, CommandCall } from './command.ts';
import { checkCredentials } from './doctor-credentials.ts';
import { checkHttps } from './doctor-https.ts';
import { checkStore } from './doctor-store.ts';
import type { Finding, Installation, Report } from './finding.ts';
import { inspectFolder, type LoadedGroup, listOrRefuse } from './inspection.ts';

export const command: Command = {
  name: 'doctor',
  about:
    'Look for what is wrong: Node, settings, the folder, controllers, credentials, identity providers, certificate, traces; exit 1 when something is',
  // No setting must be valid, because `checkSettings` reports the invalid ones.
  reads: [],
  run,
};

/** The checks, in the order of their findings. When a check throws an Error, the message is one more finding. */
const CHECKS: Readonly<Record<string, (installation: Installation, report: Report) => void | Promise<void>>> = {
  node: (_, report) => checkNode(report),
  settings: checkSettings,
  folder: checkFolder,
  service: checkService,
  controllers: checkControllers,
  store: checkStore,
  credentials: checkCredentials,
  identity: checkIdentity,
  https: checkHttps,
  traces: checkTraces,
};

async function run(call: CommandCall): Promise<Answer> {
  const inspection = await inspectFolder(call.settings, call.io).catch((error: Error) => error);
  return examine({ ...call, inspection });
}

export async function examine(installation: Installation): Promise<Answer> {
  const { io, ink } = installation;
  const findings: Finding[] = [];
  for (const [topic, check] of Object.entries(CHECKS)) {
    const report: Report = (level, message, at) => void findings.push({ level, topic, message, at });
    try {
      await check(installation, report);
    } catch (error) {
      report('wrong', (error as Error).message);
    }
  }
  const countOf = (level: Finding['level']) => findings.filter((finding) => finding.level === level).length;
  const mistakes = countOf('wrong');
  const warnings = countOf('warning');
  return {
    json: { ok: mistakes === 0, wrong: mistakes, warnings, findings },
    text: [...formatFindings(findings, io.cwd, ink), summaryOf(mistakes, warnings, ink)].join('\n'),
    exitCode: mistakes === 0 ? 0 : 1,
  };
}

function formatFindings(findings: readonly Finding[], cwd: string, ink: Ink): string[] {
  const paintOf = { wrong: ink.red, warning: ink.yellow, note: ink.dim };
  const rows = findings.map(({ level, topic, message, at }) => {
    return [level, topic, at === undefined ? message : `${shortPlace(at, cwd)}: ${message}`];
  });
  const lines = alignColumns(rows).map(([level = '', ...cells]) => {
    return [paintOf[level.trimEnd() as Finding['level']](level), ...cells].join('  ');
  });
  return lines.length === 0 ? lines : [...lines, ''];
}

function summaryOf(mistakes: number, warnings: number, ink: Ink): string {
  const warningCount = warnings === 0 ? '' : `, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`;
  if (mistakes === 0) return ink.green(`Nothing is wrong${warningCount}.`);
  return ink.red(`${mistakes} ${mistakes === 1 ? 'thing is' : 'things are'} wrong${warningCount}.`);
}

/** As in package.json. */
const MIN_NODE_MAJOR = 20;

export function checkNode(report: Report, version = process.versions.node): void {
  if (Number.parseInt(version, 10) < MIN_NODE_MAJOR)
    report('wrong', `Node ${version} is too old: ${MIN_NODE_MAJOR} or later is needed`);
}

function checkSettings({ readings, settings, io }: Installation, report: Report): void {
  for (const { row, source, problem } of readings) {
    if (problem !== undefined) report('wrong', problem);
    if (row.secret && source === 'flag')
      report('warning', `${flagOf(row.name)} shows the secret to every user of this machine; use ${row.name}`);
  }
  for (const { variable, setting } of ignoredVariables(io.env))
    report('warning', `nothing reads ${variable}; the setting is called ${setting}`);
  // A block with the prefix length 0, such as `0.0.0.0/0`, contains every address.
  const allAddresses = settings.trustedProxies.find((block) => /\/0+$/.test(block));
  if (allAddresses === undefined) return;
  const effect = 'is every address, so each client can choose the address that it is limited by';
  report('warning', `TRUSTED_PROXIES: ${allAddresses} ${effect}`);
}

function checkFolder({ settings: { controllersDir: dir }, inspection }: Installation, report: Report): void {
  const files = listOrRefuse(dir);
  const paths = Array.from(files.values(), (file) => join(dir, file));
  checkFilePermissions([...new Set([dir, ...paths.map((path) => dirname(path)), ...paths])], report);
  const other = findOtherPackage(dir);
  if (other !== undefined)
    report('warning', `controllers import gatefold ${other.version}, and ${version()} runs them`, other.folder);
  if (files.size === (files.has(SERVICE) ? 1 : 0)) report('warning', 'it has no controller', dir);
  if (inspection instanceof Error) throw inspection;
}

/** Reports paths that other users can write to. Code that they write there would run as the user of the service. */
function checkFilePermissions(paths: readonly string[], report: Report): void {
  for (const path of paths) {
    const mode = trustedMode(statSync(path));
    if ((mode & WRITABLE_BY_EVERYONE) !== 0)
      report('wrong', 'every user of this machine can write to it, and so change what the service runs', path);
    else if ((mode & 0o020) !== 0)
      report('note', 'its group can write to it, and so change what the service runs', path);
  }
}

function checkService({ inspection, settings: { dataDir } }: Installation, report: Report): void {
  if (inspection instanceof Error) return;
  if (inspection.service === undefined) {
    if (hasServiceMark(dataDir))
      report('wrong', 'the service has had a service file, and it is gone: every request is a 500 until it is back');
    return;
  }
  if (!canKeepMark(dataDir))
    report(
      'warning',
      'it cannot be written, so a start without the service file would serve without its rules',
      dataDir,
    );
  const { ok, code, error, at, path } = inspection.service;
  if (!ok) report('wrong', `it does not load, so every request is a 500: ${error} (${code})`, at ?? path);
}

/** Makes a folder and removes it, because permissions mean nothing in some file systems, such as /proc. */
function canKeepMark(dataDir: string): boolean {
  // The service makes a folder that is missing, in the nearest one that exists.
  let folder = resolve(dataDir);
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  try {
    rmdirSync(mkdtempSync(join(folder, '.doctor-')));
    return true;
  } catch {
    return false;
  }
}

function checkControllers({ settings, inspection }: Installation, report: Report): void {
  const { controllersDir: dir, publicOrigin, domains, publicFallback } = settings;
  if (inspection instanceof Error) return;
  const fallback = inspection.groups.find(({ group }) => group === FALLBACK);
  if (fallback !== undefined && publicFallback !== undefined)
    report(
      'warning',
      'PUBLIC_FALLBACK: its page is never sent, because the fallback answers in its place',
      fallback.path,
    );
  const mount = inspection.groups.find(({ operations }) => operations[0]?.contract?.unchecked === A_HANDLER);
  if (mount !== undefined && publicOrigin.length + domains.length === 0)
    report('note', 'the origin in its URLs is that of Host, which a client chooses: set PUBLIC_ORIGIN', mount.path);
  for (const { file, reason } of findLookAlikes(dir, [inspection.service ?? {}]))
    report('warning', `it is not a controller: ${reason}`, join(dir, file));
  for (const group of inspection.groups) {
    reportGroup(group, report);
    reportUnchecked(group, report);
  }
  const whole = inspection.groups.filter(({ operations }) => operations.some(({ sendsAll }) => sendsAll === true));
  const names = whole.map(({ group }) => urlNameOf(group)).join(', ');
  if (names !== '')
    report('note', `undeclared fields of results go out (${names}): write results: 'declared' in service.ts`, dir);
  for (const { reason, at } of inspection.strayErrors)
    report('wrong', `it throws outside of any request: ${reason}`, at);
}

/** Reports operations whose data is not checked, or whose result is not documented, one line a reason. */
function reportUnchecked({ operations, path, notes = [] }: LoadedGroup, report: Report): void {
  for (const { event, reason } of notes)
    if (event === 'result-unfiltered') report('warning', `results: 'declared' does not limit ${reason}`, path);
  const namesByReason = new Map<string, string[]>();
  const note = (reason: string | undefined, name: string, write: (reason: string) => string) => {
    if (reason !== undefined) namesByReason.set(write(reason), [...(namesByReason.get(write(reason)) ?? []), name]);
  };
  for (const { name, contract } of operations) {
    // A reason that begins with `its params` is about the types of path and query.
    note(contract?.unchecked, name, (reason) => {
      return `the ${reason.startsWith('its params') ? 'path and query are' : 'data is'} not checked: ${reason}`;
    });
    note(contract?.undocumented, name, (reason) => `not documented: ${reason}`);
  }
  for (const [reason, names] of namesByReason) report('note', `${names.join(', ')}: ${reason}`, path);
}

function reportGroup({ group, ok, code, error, at, path, operations }: LoadedGroup, report: Report): void {
  if (!ok) return report('wrong', `it does not load: ${error} (${code})`, at ?? path);
  if (operations.length === 0 && group !== SERVICE)
    report('warning', 'it has no operation, so every request to it fails', path);
}

function checkIdentity({ settings: { dataDir } }: Installation, report: Report): void {
  const path = join(dataDir, 'identity-providers.json');
  const log = createLog({ level: 'silent', sink: { write() {} } });
  const providers = createProviders({ path, log });
  providers.close();
  for (const { name, reason } of providers.refused)
    report('wrong', `provider ${JSON.stringify(name)} was skipped: ${reason}`, path);
}

/** The variables that have no effect without OTEL_EXPORTER_OTLP_ENDPOINT, which names the receiver of traces. */
const DEPENDENT_VARIABLE = /^OTEL_(?:EXPORTER_OTLP_|TRACES_|BSP_)/;

/** A wrong variable of OpenTelemetry stops no start, so it is easily missed. */
function checkTraces({ io: { env } }: Installation, report: Report): void {
  if (!asksForTraces(env)) {
    const names = Object.keys(env).filter((name) => DEPENDENT_VARIABLE.test(name) && (env[name] ?? '').trim() !== '');
    if (env.OTEL_TRACES_EXPORTER !== 'none' && names.length > 0)
      report('warning', `${names.join(', ')}: no request is traced, because OTEL_EXPORTER_OTLP_ENDPOINT is not set`);
    return;
  }
  const state = readTraceSettings(env);
  if (state.kind === 'on')
    for (const { variable, reason } of state.ignored) report('warning', `${variable}: ${reason}`);
  else if (!state.isDeliberate) report('wrong', `no request is traced: ${state.reason}`);
}
