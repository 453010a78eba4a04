// The controller of a live page for tests of channels.
const GATEFOLD = new URL('../../dist/controller.js', import.meta.url).href;

/** `publish` makes events, and `page` has them. The header `X-Worker` names the version and the process. */
export function livePage(version: number, keep = 1000): string {
  return `
import { channel, eventStream } from ${JSON.stringify(GATEFOLD)};
const tasks = channel('tasks', { keep: ${keep} });
export default class LiveController {
  index() { return { pid: process.pid }; }
  async publish(data, { query }) { return { id: await tasks.publish({ n: Number(query.n), at: Date.now() }), pid: process.pid }; }
  /** Publishes numbers, and returns those that the supervisor has confirmed. */
  async batch(data, { query }) {
    const confirmed = [];
    for (let n = Number(query.from); n < Number(query.to); n++) {
      try { await tasks.publish({ n }); } catch (error) { return { confirmed, pid: process.pid, version: ${version}, error: error.code }; }
      confirmed.push(n);
    }
    return { confirmed, pid: process.pid, version: ${version} };
  }
  page(data, { lastEventId, signal, setHeader }) {
    setHeader('X-Worker', '${version} ' + process.pid);
    return eventStream(tasks.subscribe({ after: lastEventId, signal }));
  }
}
`;
}
