// `gatefold explain VERB PATH`: which row, which group, which operation would answer, or exactly why none does. The verdict
// is the app's own (question.ts), the words for it are verdict-words.ts.
import { METHODS } from '../base/builtins.ts';
import type { Question } from './ask-app.ts';
import { type Answer, type Call, type Command, type CommandIo, type ExitCode, runCommand, UsageError } from './command.ts';
import { inspectFolder } from './inspection.ts';
import { describeVerdict } from './verdict-words.ts';

const EXPLAIN: Command = {
  name: 'explain',
  usage: 'VERB PATH [--authorization foreign|ID]',
  about: 'Say which row, which group and which operation would answer a request, or exactly why none does; nothing is called',
  help: ['--authorization WHAT   As if with an Authorization header: foreign, one that no credential matches, or the id of a credential'],
  options: { authorization: { type: 'string' } },
  operands: ['VERB', 'PATH'],
  run: answer,
};

export function run(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  return runCommand(EXPLAIN, argv, io);
}

async function answer({ operands: [verb = '', target = ''], options, settings, io, ink }: Call): Promise<Answer> {
  const question = parseQuestion(verb, target, options.authorization, (io.now ?? Date.now)());
  const inspection = await inspectFolder(settings, io, question);
  if (inspection.verdict === undefined) throw new Error('The question was not answered');
  return describeVerdict({ question, verdict: inspection.verdict, inspection, dir: settings.controllersDir, cwd: io.cwd }, ink);
}

function parseQuestion(verb: string, target: string, authorization: string | undefined, now: number): Question {
  const upper = verb.toUpperCase();
  if (!METHODS.includes(upper)) throw new UsageError(`${JSON.stringify(verb)} is not an HTTP method`);
  // In a request line these would end it.
  if (target === '' || /[\0-\x20\x7f]/.test(target)) throw new UsageError('PATH: it is empty, or has a space or a control character');
  if (authorization !== undefined && /^(?:gf[ks]_|bearer )/i.test(authorization)) {
    throw new UsageError('--authorization: that is a token; give the id of its row, so that the token stays secret');
  }
  if (authorization === '') throw new UsageError('--authorization: the value is missing');
  return { verb: upper, target, now, ...(authorization === undefined ? {} : { authorization }) };
}
