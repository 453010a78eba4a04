// One step of a request: reads the data of the operation, which is the body, or the query when there is no body. The
// files in body/ read and decode the body.
import type { Responder } from './answer/response.ts';
import { type DataSink, type ProcessLimits, readBody, tooLarge } from './body/body.ts';
import { objectWithoutPrototype, parseQuery, type Query } from './body/form.ts';
import { checkAccepted } from './body/media-type.ts';
import { streamBody } from './body/stream.ts';
import type { Exchange, Outcome, Step } from './exchange.ts';

export interface DataOptions {
  readonly bodyLimit: number;
  readonly processLimits: ProcessLimits;
  /** Continues the request with its next step. */
  readonly resume: (exchange: Exchange) => void;
  readonly respond: Responder;
}

export function createReadData({ bodyLimit, processLimits, resume, respond }: DataOptions): Step {
  const sink: DataSink = {
    done(exchange, data, query, bytes) {
      keepInput(exchange, data === undefined ? dataWithoutBody(exchange, query) : data, query, bytes);
      resume(exchange);
    },
    fail: (exchange, error) => respond.fail(exchange, error),
  };

  return function readData(exchange): Outcome {
    const { settings, mount } = exchange.choice.operation;
    const { body, bodyLimit: limit = bodyLimit, accepts } = settings;
    if (mount?.kind === 'node') {
      // The handler reads the body itself. hand-over counts the bytes of a body without a length.
      if (Number(exchange.head.contentLength) > limit) throw tooLarge(limit, Number(exchange.head.contentLength));
      return undefined;
    }
    if (body === 'stream') {
      if (accepts !== undefined && exchange.hasBody) checkAccepted(exchange.head.contentType, accepts);
      const refuse = mount && ((error: Error) => respond.fail(exchange, error));
      const stream = streamBody(exchange, limit, processLimits.streamedUploads, refuse);
      return keepInput(exchange, stream, parseQuery(exchange.queryText, objectWithoutPrototype()), undefined);
    }
    if (!exchange.hasBody) {
      const query = parseQuery(exchange.queryText);
      return keepInput(exchange, dataWithoutBody(exchange, query), query, undefined);
    }
    const query = parseQuery(exchange.queryText, objectWithoutPrototype());
    readBody(exchange, { limit, accepts }, processLimits, sink, query);
    return 'later';
  };
}

function keepInput(exchange: Exchange, data: unknown, query: Query, bytes: Buffer | undefined): undefined {
  exchange.input = { data, query, path: exchange.path, headers: undefined, bytes };
}

/**
 * Returns `{}` when the operation was chosen by a verb that usually has a body: the client has left out this body. In
 * all other cases, returns the query. An operation that the URL names, such as `POST /api/order/paid?id=7`, gets the
 * query (docs/DECISIONS.md, 11.2).
 */
function dataWithoutBody({ verb, choice }: Exchange, query: Query): unknown {
  return !choice.isByName && (verb === 'POST' || verb === 'PUT' || verb === 'PATCH') ? {} : query;
}
