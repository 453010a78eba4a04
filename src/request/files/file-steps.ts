// The steps of a request for a path outside of BASE_PATH, with PUBLIC_DIR. A hit costs its caller nothing. What is not
// there counts for RATE_LIMIT, because a scan asks for it.
import { refusal } from '../../base/errors.ts';
import type { ServiceDefinition } from '../../callers/access/definition.ts';
import type { Responder } from '../answer/response.ts';
import type { Answer } from '../answer/result.ts';
import type { Exchange, Outcome, Step } from '../exchange.ts';
import type { ResolvedPath } from '../router.ts';
import type { FileRequest, PublicFiles } from './public-files.ts';

export function createFileSteps(
  files: PublicFiles | undefined,
  headersOf: ServiceDefinition['fileHeaders'],
  checkRate: Step,
  respond: Pick<Responder, 'file'>,
): readonly Step[] {
  if (files === undefined) return [];
  const send = (exchange: Exchange, answer: Answer | undefined): Outcome => {
    if (answer === undefined) return undefined;
    respond.file(exchange, answer);
    return 'later';
  };
  const requestOf = ({ verb, resolvedPath, queryText, request: { headers } }: Exchange): FileRequest => ({
    ...{ verb, path: (resolvedPath as ResolvedPath).path, queryText, headers, headersOf },
  });
  return [
    (exchange) => send(exchange, files.find(requestOf(exchange))),
    checkRate,
    (exchange) => send(exchange, files.findPage(requestOf(exchange))),
    () => {
      throw refusal('FILE_NOT_FOUND');
    },
  ];
}
