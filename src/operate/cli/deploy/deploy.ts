// `gatefold deploy HOST[:DIR]…` copies the project to machines, one after the other. After each copy, the command waits
// until that machine serves the new release. machine.ts is the part of the command that runs on the machine.
import { describeFailure } from '../../../base/failure.ts';
import { plain } from '../../../base/ink.ts';
import { buildName, ownFiles } from '../../../own-files.ts';
import { type Answer, type Command, type CommandCall, CommandError, print, UsageError } from '../command.ts';
import { command as contracts } from '../contracts.ts';
import { releaseName } from './folders.ts';
import { type Order, type Result, readReply } from './order.ts';
import { BUILD_SCRIPT, type Project, planProject } from './project.ts';
import { runNpm } from './release.ts';
import { isMachine, type Machine, orderCommand, probeCommand, receiveCommand } from './remote.ts';
import { quote, runRemote } from './ssh.ts';
import { parseTarget, type Target } from './target.ts';

export const command: Command = {
  name: 'deploy',
  about: 'Bring this project to machines by ssh, one after the other, and wait until each one serves it',
  flags: {
    setup: 'The first time: make DIR, its data folder, and with systemd a unit',
    back: 'Go back to the release before',
    'dry-run': 'Show the files and ask the machines, and change nothing',
    'keep COUNT': 'How many releases stay; default: 5',
  },
  operands: ['HOST[:DIR]…'],
  reads: ['controllersDir', 'dataDir', 'tlsCert', 'tlsKey'],
  run,
};

interface Outcome extends Omit<Target, 'name'> {
  readonly result?: Result;
  readonly error?: string;
}

async function run(call: CommandCall): Promise<Answer> {
  const { operands, switches, flagValues, settings, io, now } = call;
  if (switches.has('back'))
    for (const other of ['setup', 'dry-run'])
      if (switches.has(other)) throw new UsageError(`--back and --${other} exclude each other`);
  const printStep = (line: string) => print(io.stderr, `${plain(line)}\n`, 0);
  let project = planProject(io.cwd, settings);
  const targets = operands.map((operand) => parseTarget(operand, project.name));
  const copiesProject = !switches.has('back') && !switches.has('dry-run');
  if (copiesProject && project.hasTypeScript) {
    // A machine has no TypeScript.
    const { warnings = [] } = await contracts.run({ ...call, switches: new Set() });
    for (const warning of warnings) await printStep(warning);
    project = planProject(io.cwd, settings);
  }
  if (copiesProject && project.hasPage) {
    await printStep(`npm run ${BUILD_SCRIPT}`);
    runNpm(['run', BUILD_SCRIPT], io.cwd, io.env);
    project = planProject(io.cwd, settings);
  }
  const { root: _root, leftOut, files, ...projectFacts } = project;
  const order: OrderForAll = {
    ...projectFacts,
    fileCount: files.length,
    action: switches.has('back') ? 'back' : 'release',
    releaseName: releaseName(now),
    gatefoldCopy: buildName(),
    keep: parseKeep(flagValues.keep),
    setup: switches.has('setup'),
  };
  if (switches.has('dry-run'))
    return describePlan(project, await Promise.all(targets.map((target) => ask(target, order))));
  const outcomes: Outcome[] = [];
  // With `--setup`, a service that nobody has started yet is no failure.
  const isDone = ({ result }: Outcome) => result?.state === 'serving' || (order.setup && result?.state === 'unstarted');
  for (const path of leftOut) await printStep(`left out: ${path}`);
  for (const target of targets) {
    const outcome = await deployTo(target, project, order, (step) => printStep(`${target.name}: ${step}`));
    outcomes.push(outcome);
    if (!isDone(outcome)) break;
  }
  const untouched = targets.slice(outcomes.length).map(({ name }) => name);
  const ok = outcomes.every(isDone);
  const lines = outcomes.flatMap(describeOutcome);
  if (untouched.length > 0) lines.push(`Untouched: ${untouched.join(', ')}`);
  const json = { ok, machines: outcomes, untouched };
  return { json, text: lines.map(plain).join('\n'), exitCode: ok ? 0 : 1 };
}

/** The order without `dir`, because each machine reports the absolute path of its own folder. */
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
      const reply = readReply(line);
      if (reply === undefined) return;
      if ('step' in reply) void report(reply.step);
      else result ??= reply.result;
    };
    await runRemote({ host, command: orderCommand({ ...order, dir }), files, onLine });
    if (result === undefined) throw new CommandError(`${name}: the answer is incomplete`);
    return { host, dir, result };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { host, dir, error: error.message };
  }
}

/** The state of a machine before a deployment, or the reason why none can begin. */
type Prospect = Pick<Outcome, 'host' | 'dir' | 'error'> & { readonly sendsGatefold?: boolean };

/** Asks a machine whether a deployment can begin there, and changes nothing, with `--setup` neither. */
async function ask(target: Target, order: OrderForAll): Promise<Prospect> {
  const { host, dir } = target;
  try {
    const machine = await probe(target, { ...order, setup: false }, order.setup);
    return { host, dir: machine.dir, sendsGatefold: !machine.hasGatefoldCopy };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { host, dir, error: error.message };
  }
}

function describePlan({ files, leftOut, bytes }: Project, machines: readonly Prospect[]): Answer {
  const ok = machines.every(({ error }) => error === undefined);
  const lines = [
    ...files,
    ...leftOut.map((path) => `left out: ${path}`),
    ...machines.map(({ host, dir, error, sendsGatefold }) =>
      error === undefined
        ? `${host}: ${dir} would get ${files.length} files, ${bytes} bytes${sendsGatefold ? ', and this Gatefold' : ''}`
        : `${host}: not possible. ${error}`,
    ),
  ];
  return { json: { ok, files, leftOut, bytes, machines }, text: lines.map(plain).join('\n'), exitCode: ok ? 0 : 1 };
}

/** Asks a machine for its state. @throws CommandError with the remedy, when a deployment to the machine cannot work */
async function probe({ host, dir, name }: Target, { gatefoldCopy, setup }: OrderForAll, mayBeNew = setup) {
  let machine: Machine | undefined;
  const onLine = (line: unknown) => {
    if (isMachine(line)) machine = line;
  };
  await runRemote({ host, command: probeCommand({ dir, gatefoldCopy, setup }), onLine });
  if (machine === undefined) throw new CommandError(`${name}: no POSIX shell answers there`);
  if (machine.node === null)
    throw new CommandError(
      `${name} has no node in the PATH of ssh: install Node 22.18 or later (nodejs.org/en/download), or link it into /usr/local/bin`,
    );
  if (Number.parseInt(machine.node, 10) < 20)
    throw new CommandError(`${name} has Node ${machine.node}: install Node 20 or later, better 22.18 or later`);
  const { refusal: code } = machine;
  if (code === 'EACCES' || code === 'EPERM')
    throw new CommandError(
      `${name}: ${machine.user} may not write to ${machine.dir} (${code}). Run there: sudo install -d -o ${machine.user} ${quote(machine.dir)}; or deploy as root`,
    );
  // No other user could write on a full disk, or below a file.
  if (code !== undefined)
    throw new CommandError(
      `${name}: cannot write to ${machine.dir}: ${describeFailure(Object.assign(new Error(code), { code }))}`,
    );
  const { writableByOthers } = machine;
  if (writableByOthers !== undefined)
    throw new CommandError(
      `${name}: others than ${machine.user} can change ${writableByOthers}, and so run programs as ${machine.user}. Deploy as its owner, to another folder, or run there: chown ${machine.user} ${quote(writableByOthers)} && chmod go-w ${quote(writableByOthers)}`,
    );
  if (!machine.isSetUp && !mayBeNew)
    throw new CommandError(`${name} has no ${machine.dir}. The first time: gatefold deploy --setup`);
  return machine;
}

function parseKeep(text = '5'): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new UsageError('--keep takes a whole number from 1 to 9999');
  return Number(text);
}

function describeOutcome({ host, dir, result, error }: Outcome): string[] {
  if (result === undefined) return [`${host}: not deployed. ${error}`];
  const { state, release, current, before, errors, notes } = result;
  const summaries = {
    serving: `${dir} serves ${release}, before it ${before ?? 'nothing'}`,
    unstarted: `${dir} has ${release}, and nothing serves it yet`,
    failed: `${release} does not serve. ${dir}/current leads to ${current}`,
  };
  return [...errors, ...notes, summaries[state]].map((line) => `${host}: ${line}`);
}
