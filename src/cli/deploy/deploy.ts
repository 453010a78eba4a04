// `gatefold deploy HOST[:DIR]…` copies the project to machines, one after the other. After each copy, the command waits
// until that machine serves the new release. machine.ts is the part of the command that runs on the machine.
// docs/DEPLOYING.md is the manual.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { plain } from '../../base/ink.ts';
import { packagePath, version } from '../../own-files.ts';
import { type Answer, type Call, type Command, print, Refused, UsageError } from '../command.ts';
import { releaseName } from './folders.ts';
import type { Order, Reply, Result } from './order.ts';
import { type Project, planProject, slashed } from './project.ts';
import { type Machine, orderCommand, probeCommand, receiveCommand } from './remote.ts';
import { type Files, quote, runRemote } from './ssh.ts';
import { parseTarget, type Target } from './target.ts';

export const command: Command = {
  name: 'deploy',
  usage: 'HOST[:DIR]…',
  about: 'Bring this project to machines by ssh, one after the other, and wait until each one serves it',
  flags: {
    setup: 'The first time: make DIR, its data folder, and with systemd a unit',
    back: 'Go back to the release before',
    'keep COUNT': 'How many releases stay; default: 5',
  },
  operands: ['HOST[:DIR]…'],
  reads: ['controllersDir', 'dataDir', 'tlsCert', 'tlsKey'],
  run,
};

/** The end of the deployment to one machine. */
interface Outcome {
  readonly host: string;
  readonly dir: string;
  readonly result?: Result;
  /** The reason why the machine sent no result. */
  readonly error?: string;
}

async function run({ operands, flags, options, settings, io, now }: Call): Promise<Answer> {
  const project = planProject(io.cwd, settings);
  const targets = operands.map((operand) => parseTarget(operand, project.name));
  if (flags.has('back') && flags.has('setup')) throw new UsageError('--back and --setup exclude each other');
  const { root: _root, leftOut, files, ...projectFacts } = project;
  const order: OrderForAll = {
    ...projectFacts,
    fileCount: files.length,
    action: flags.has('back') ? 'back' : 'release',
    releaseName: releaseName(now),
    gatefoldCopy: gatefoldCopyName(),
    keep: parseKeep(options.keep),
    setup: flags.has('setup'),
  };
  const outcomes: Outcome[] = [];
  const isDone = ({ result }: Outcome) =>
    result?.state === 'serving' || (flags.has('setup') && result?.state === 'unstarted');
  const printStep = (line: string) => print(io.stderr, `${plain(line)}\n`, 0);
  for (const path of leftOut) await printStep(`left out: ${path}`);
  for (const target of targets) {
    const outcome = await deployTo(target, project, order, (step) => printStep(`${target.name}: ${step}`));
    outcomes.push(outcome);
    if (!isDone(outcome)) break;
  }
  const untouched = targets.slice(outcomes.length).map(({ name }) => name);
  const ok = outcomes.every(isDone);
  return {
    json: { ok, machines: outcomes, untouched },
    text: [
      ...outcomes.flatMap(describeOutcome),
      ...(untouched.length === 0 ? [] : [`Untouched: ${untouched.join(', ')}`]),
    ]
      .map(plain)
      .join('\n'),
    exitCode: ok ? 0 : 1,
  };
}

/** An order without the folder, whose absolute path only the target machine can say. */
type OrderForAll = Omit<Order, 'dir'>;

async function deployTo(
  target: Target,
  project: Project,
  order: OrderForAll,
  report: (step: string) => Promise<unknown>,
): Promise<Outcome> {
  const { host, name } = target;
  let { dir } = target;
  try {
    const machine = await probe(target, order);
    dir = machine.dir;
    if (!machine.hasGatefoldCopy) {
      await report(`Gatefold ${order.gatefoldCopy}`);
      const copyPath = `${dir}/runtime/${order.gatefoldCopy}`;
      await runRemote({ host, command: receiveCommand(copyPath), files: ownFiles(), onLine() {} });
    }
    const files = order.action === 'back' ? undefined : { root: project.root, paths: project.files };
    if (files !== undefined) await report(`${project.files.length} files, ${project.bytes} bytes`);
    let result: Result | undefined;
    const onLine = (line: unknown) => {
      const reply = line as Reply;
      if ('step' in reply) void report(reply.step);
      else result ??= reply.result;
    };
    await runRemote({ host, command: orderCommand({ ...order, dir }), files, onLine });
    if (result === undefined) throw new Refused(`${name}: the answer is incomplete`);
    return { host, dir, result };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { host, dir, error: error.message };
  }
}

/** @throws Refused when the machine lacks something. The message is one line, and says how to get the missing part. */
async function probe({ host, dir, name }: Target, { gatefoldCopy, setup }: OrderForAll): Promise<Machine> {
  let machine: Machine | undefined;
  const onLine = (line: unknown) => {
    machine = line as Machine;
  };
  await runRemote({ host, command: probeCommand({ dir, gatefoldCopy, setup }), onLine });
  if (machine === undefined) throw new Refused(`${name}: no POSIX shell answers there`);
  if (machine.node === null)
    throw new Refused(
      `${name} has no node in the PATH of ssh: install Node 22.18 or later (nodejs.org/en/download), or link it into /usr/local/bin`,
    );
  if (Number.parseInt(machine.node, 10) < 20)
    throw new Refused(`${name} has Node ${machine.node}: install Node 20 or later, better 22.18 or later`);
  if (machine.refusal !== undefined)
    throw new Refused(
      `${name}: ${machine.user} may not write to ${machine.dir} (${machine.refusal}). Run there: sudo install -d -o ${machine.user} ${quote(machine.dir)}; or deploy as root`,
    );
  const { writableByOthers } = machine;
  if (writableByOthers !== undefined)
    throw new Refused(
      `${name}: others than ${machine.user} can change ${writableByOthers}, and so run programs as ${machine.user}. Deploy as its owner, or run there: chown ${machine.user} ${quote(writableByOthers)} && chmod go-w ${quote(writableByOthers)}`,
    );
  if (!machine.isSetUp && !setup)
    throw new Refused(`${name} has no ${machine.dir}. The first time: gatefold deploy --setup`);
  return machine;
}

/** Returns the files of Gatefold itself. package.json is the last one: it shows the machine that all have arrived. */
function ownFiles(): Files {
  const root = packagePath();
  const built = readdirSync(join(root, 'dist'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:js|html)$/.test(entry.name))
    .map((entry) => slashed(relative(root, join(entry.parentPath, entry.name))))
    .sort();
  return { root, paths: [...built, 'deploy/gatefold.service', 'package.json'] };
}

/**
 * Returns the name of the folder below `DIR/runtime` on the target machine that holds this version of Gatefold:
 * `0.1.0`, or `0.1.0+5f2a9c0d` for a checkout. The files of a checkout change while the version stays the same, so the
 * name has a hash of the files.
 */
function gatefoldCopyName(): string {
  if (basename(dirname(packagePath())) === 'node_modules') return version();
  const hash = createHash('sha256');
  const { root, paths } = ownFiles();
  for (const path of paths) hash.update(`${path}\0`).update(readFileSync(join(root, path)));
  return `${version()}+${hash.digest('hex').slice(0, 8)}`;
}

function parseKeep(text = '5'): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new UsageError('--keep takes a whole number from 1 to 9999');
  return Number(text);
}

function describeOutcome({ host, dir, result, error }: Outcome): string[] {
  if (result === undefined) return [`${host}: not deployed. ${error}`];
  const { state, release, current, before, errors, notes } = result;
  const lines = notes.map((note) => `${host}: ${note}`);
  if (state === 'serving') return [...lines, `${host}: ${dir} serves ${release}, before it ${before ?? 'nothing'}`];
  if (state === 'unstarted') return [...lines, `${host}: ${dir} has ${release}, and nothing serves it yet`];
  return [
    ...errors.map((line) => `${host}: ${line}`),
    ...lines,
    `${host}: ${release} does not serve. ${dir}/current leads to ${current ?? 'nothing'}`,
  ];
}
