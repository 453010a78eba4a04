// The controller of a live page for tests of channels.
const GATEFOLD = new URL('../../dist/controller.js', import.meta.url).href;

/** `page` first says which worker answers, without an id. Then it has the events, which `publish` makes. */
export function livePage(version: number, keep = 1000): string {
  return `
import { channel, eventStream } from ${JSON.stringify(GATEFOLD)};
const tasks = channel('tasks', { keep: ${keep} });
async function* greeted(events) {
  yield { data: { pid: process.pid, version: ${version} } };
  yield* events;
}
export default class LiveController {
  index() { return { pid: process.pid }; }
  async publish(data, { query }) { return { id: await tasks.publish({ n: Number(query.n) }), pid: process.pid }; }
  page(data, { lastEventId, signal }) { return eventStream(greeted(tasks.subscribe({ after: lastEventId, signal }))); }
  plain(data, { lastEventId, signal }) { return eventStream(tasks.subscribe({ after: lastEventId, signal })); }
}
`;
}
