// `gatefold doctor`: everything that is wrong, or may soon be, in the order in which a start would stumble over it. What
// is looked at stands in the doctor-*.ts files; here it is put together and printed.
import { type Answer, type Call, type Command, type CommandIo, type ExitCode, runCommand } from './command.ts';
import { checkCredentials } from './doctor-credentials.ts';
import { checkFolder } from './doctor-folder.ts';
import { checkIdentity } from './doctor-identity.ts';
import { checkNode, checkSettings } from './doctor-settings.ts';
import { type Finding, reportTo } from './findings.ts';
import { alignColumns, type Ink, plain, shortPlace } from './ink.ts';

const DOCTOR: Command = {
  name: 'doctor',
  usage: '',
  about: 'Look for what is wrong: Node, settings, the folder, controllers, credentials, identity providers; exit 1 when something is',
  help: [],
  options: {},
  operands: [],
  takesBadSettings: true,
  run: examine,
};

export function run(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  return runCommand(DOCTOR, argv, io);
}

async function examine({ settings, readings, io, ink }: Call): Promise<Answer> {
  const findings: Finding[] = [];
  const now = (io.now ?? Date.now)();
  checkNode(reportTo(findings, 'node'));
  checkSettings(readings, reportTo(findings, 'settings'));
  const groups = await checkFolder({
    settings,
    io,
    folder: reportTo(findings, 'folder'),
    controllers: reportTo(findings, 'controllers'),
  });
  checkCredentials({ dataDir: settings.dataDir, sessionKey: settings.sessionKey, now, groups }, reportTo(findings, 'credentials'));
  checkIdentity(settings.dataDir, reportTo(findings, 'identity'));
  const count = (level: Finding['level']) => findings.filter((finding) => finding.level === level).length;
  const wrong = count('wrong');
  const warnings = count('warning');
  return {
    json: { ok: wrong === 0, wrong, warnings, findings },
    text: [...findings.map(lineOf(io.cwd, ink, findings)), '', summaryOf(wrong, warnings, ink)].join('\n'),
    exitCode: wrong === 0 ? 0 : 1,
  };
}

function lineOf(cwd: string, ink: Ink, findings: readonly Finding[]): (finding: Finding, index: number) => string {
  const heads = alignColumns(findings.map(({ level, topic }) => [level, topic, '']));
  const paints = { wrong: ink.red, warning: ink.yellow, note: ink.dim };
  return ({ level, message, at }, index) => {
    const [first = '', second = ''] = heads[index] ?? [];
    const place = at === undefined ? '' : `${shortPlace(at, cwd)}: `;
    return `${paints[level](first)}  ${second}  ${plain(place + message)}`;
  };
}

function summaryOf(wrong: number, warnings: number, ink: Ink): string {
  const warned = warnings === 0 ? '' : `, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`;
  if (wrong === 0) return ink.green(`Nothing is wrong${warned}.`);
  return ink.red(`${wrong} ${wrong === 1 ? 'thing is' : 'things are'} wrong${warned}.`);
}
