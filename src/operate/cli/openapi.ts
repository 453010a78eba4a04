// `gatefold openapi` prints the document of `GET /api/openapi.json` without a server, for generators and CI.
import type { Answer, Command, CommandCall } from './command.ts';
import { brokenFiles, inspectFolder } from './inspection.ts';
import { brokenPlace } from './routes.ts';

export const command: Command = {
  name: 'openapi',
  about: 'Print the OpenAPI 3.1 document of the folder, as GET /api/openapi.json answers it; with --json in one line',
  reads: ['controllersDir', 'dataDir', 'basePath'],
  run,
};

/** When a file does not load, the document lacks its group, so the exit code is 1. */
async function run({ settings, io }: CommandCall): Promise<Answer> {
  const inspection = await inspectFolder(settings, io, { wantsDocument: true });
  const { document } = inspection;
  const broken = brokenFiles(inspection);
  return {
    json: document,
    text: JSON.stringify(document, null, 2),
    exitCode: broken.length === 0 ? 0 : 1,
    warnings: broken.map(
      (file) => `${brokenPlace(file, io.cwd)} does not load and is not in the document: ${file.error}`,
    ),
  };
}
