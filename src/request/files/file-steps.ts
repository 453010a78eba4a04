// The steps of a request that a file of PUBLIC_DIR may answer. A hit costs its caller nothing. A path that names
// nothing counts for RATE_LIMIT, because a scan asks for many of them.
import { refusal } from '../../base/errors.ts';
import { FALLBACK, isRoot } from '../../base/group-name.ts';
import { isPromise } from '../../base/values.ts';
import type { ServiceDefinition } from '../../callers/access/definition.ts';
import { fitRoute } from '../../groups/group-routes.ts';
import type { Group } from '../../groups/operations.ts';
import type { Groups } from '../../live/load/registry.ts';
import type { Answer } from '../answer/result.ts';
import type { Exchange, Outcome, Step } from '../exchange.ts';
import type { ResolvedPath } from '../router.ts';
import type { StepParts } from '../steps.ts';
import type { FileRequest } from './public-files.ts';

/** How often a request looks for its file. A build or an editor replaces a file seldom, a loop all the time. */
const MAX_LOOKS = 4;

/** @returns undefined without PUBLIC_DIR */
export function createFileSteps({ files, groups, respond }: StepParts, headersOf: ServiceDefinition['fileHeaders']) {
  if (files === undefined) return undefined;
  const send = (exchange: Exchange, find: () => Answer | undefined): Outcome => {
    const answer = withLooks(MAX_LOOKS, find);
    if (answer === undefined) return undefined;
    // Pages of other origins may not read files.
    exchange.answer.ownsCors = true;
    respond.file(exchange, answer);
    return 'later';
  };
  const requestOf = ({ verb, resolvedPath, queryText, request: { headers } }: Exchange): FileRequest => ({
    ...{ verb, path: (resolvedPath as ResolvedPath).path, queryText, headers, headersOf },
  });
  /** Says whether a request is a WebSocket handshake that the loaded group takes. */
  function opensSocket({ request }: Exchange, name: string): boolean {
    if (request.upgradeHead === undefined) return false;
    const group = groups.find(name);
    if (group === undefined || isPromise(group)) return false;
    return Array.from(group.operations.values()).some(({ mount }) => mount?.upgrade !== undefined);
  }
  /** Sends the file that the path names. Does nothing when there is none. */
  const serveFile: Step = (exchange) =>
    opensSocket(exchange, FALLBACK) ? undefined : send(exchange, () => files.find(requestOf(exchange)));
  const servePage: Step = (exchange) => send(exchange, () => files.findPage(requestOf(exchange)));

  return {
    serveFile,
    /** Sends the page of PUBLIC_FALLBACK, or refuses with `404.html`. */
    refuse: [
      servePage,
      () => {
        throw refusal('FILE_NOT_FOUND');
      },
    ],
    /**
     * Under an empty BASE_PATH, sends a file where no group with a name takes the request, and no route of the root
     * group that begins with a literal.
     */
    serveFileAtRoot(exchange: Exchange): Outcome {
      const { verb, slugs, groupInUrl, head, resolvedPath } = exchange;
      // A key may have a handler, which serves every path.
      if (head.authorization !== undefined) return undefined;
      const { segments } = (resolvedPath as ResolvedPath).path;
      const location = groups.locate({ groupInUrl, slugs }, segments, 0) ?? { groupInUrl, slugs };
      let group: ReturnType<Groups['find']>;
      try {
        group = groups.find(location.groupInUrl);
      } catch {
        // A group that does not load is the answer of a later step.
        return undefined;
      }
      // Once the group has loaded, this step runs again. A later step asks again for one that does not load.
      if (isPromise(group))
        return group.then(
          () => void exchange.stepsBegun--,
          () => undefined,
        );
      if (group !== undefined && !isRoot(group.name) && group.name !== FALLBACK) return undefined;
      if (group !== undefined && hasLiteralRoute(group, verb, location.slugs)) return undefined;
      if (opensSocket(exchange, location.groupInUrl)) return undefined;
      const outcome = serveFile(exchange);
      if (outcome !== undefined || group !== undefined || groups.find(FALLBACK) !== undefined) return outcome;
      return files.hasFallback ? servePage(exchange) : undefined;
    },
  };
}

/** Lets an answer look for its file again, where the file is replaced between the look and the answer. */
function withLooks(looks: number, find: () => Answer | undefined): Answer | undefined {
  const answer = find();
  if (answer?.body.kind !== 'file' || looks === 1) return answer;
  return { ...answer, body: { ...answer.body, findAgain: () => withLooks(looks - 1, find) } };
}

function hasLiteralRoute({ routes }: Group, verb: string, slugs: readonly string[]): boolean {
  const literal = routes.filter(({ name, segments: [first] }) =>
    // The bare path of a mount belongs to its pattern, which is in the name.
    first === undefined ? !name.includes(' ') : first.literal !== undefined,
  );
  return fitRoute(literal, verb, slugs) !== undefined;
}
