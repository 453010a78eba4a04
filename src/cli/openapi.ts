// `gatefold openapi`: the document that `GET /api/openapi.json` would answer, without a server: for generators and for
// CI.
import { type Answer, type Call, type Command, Refused } from './command.ts';
import { inspectFolder } from './inspection.ts';
import { brokenPlace } from './routes.ts';

export const command: Command = {
  name: 'openapi',
  usage: '',
  about: 'Print the OpenAPI 3.1 document of the folder, as GET /api/openapi.json answers it; with --json in one line',
  help: [],
  options: {},
  operands: [],
  reads: ['controllersDir', 'dataDir'],
  run,
};

/** A document that lacks a group would be taken for the whole. */
async function run({ settings, io }: Call): Promise<Answer> {
  const { document, groups } = await inspectFolder(settings, io, { wantsDocument: true });
  const broken = groups.filter(({ ok }) => !ok);
  if (document === undefined) throw new Refused('The document could not be made');
  return {
    json: document,
    text: JSON.stringify(document, null, 2),
    exitCode: broken.length === 0 ? 0 : 1,
    complaints: broken.map(
      (group) => `${brokenPlace(group, io.cwd)} does not load and is not in the document: ${group.error}`,
    ),
  };
}
