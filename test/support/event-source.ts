// Follows a stream of events as a browser's EventSource does. When the stream ends, this client waits as long as the
// stream's `retry` field says, and reconnects with the id of the last event. Unlike a browser, it reports a cut
// connection as an error.
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

export interface SeenEvent {
  readonly id: string | undefined;
  /** The data as sent (JSON). */
  readonly data: string;
  /**
   * For the first event of a connection: milliseconds since the end of the previous stream. Otherwise undefined.
   */
  readonly reconnected: number | undefined;
}

/**
 * Returns when the signal is aborted.
 *
 * @param isPatient whether a cut connection, and one that is refused, are no error
 */
export async function followEvents(
  url: string,
  signal: AbortSignal,
  onEvent: (event: SeenEvent) => void,
  onOpen: (answer: IncomingMessage) => void = () => {},
  isPatient = false,
): Promise<void> {
  let lastId: string | undefined;
  let ended: number | undefined;
  while (!signal.aborted) {
    let retry = 3000;
    try {
      let text = '';
      const answer = await open(url, lastId, signal);
      onOpen(answer);
      for await (const piece of answer) {
        text += piece;
        const blocks = text.split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) {
          const fields = new Map(
            block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
          );
          retry = Number(fields.get('retry') ?? retry);
          lastId = fields.get('id') ?? lastId;
          const data = fields.get('data');
          if (data === undefined) continue;
          onEvent({
            id: fields.get('id'),
            data,
            reconnected: ended === undefined ? undefined : performance.now() - ended,
          });
          ended = undefined;
        }
      }
      if (text !== '') throw new Error(`the stream ended within an event: ${JSON.stringify(text)}`);
      ended = performance.now();
      await sleep(retry, undefined, { signal });
    } catch (error) {
      if (!signal.aborted && !isPatient) throw error;
      ended ??= performance.now();
      if (isPatient) await sleep(Math.min(retry, 500), undefined, { signal }).catch(() => {});
    }
  }
}

function open(url: string, lastId: string | undefined, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { Accept: 'text/event-stream', ...(lastId !== undefined && { 'Last-Event-ID': lastId }) };
    const asked = request(url, { agent: false, signal, headers }, (answer) => {
      if (answer.statusCode === 200) resolve(answer.setEncoding('utf8'));
      else reject(new Error(`an event stream was asked for, and status ${answer.statusCode} came`));
    });
    asked.on('error', reject).end();
  });
}
