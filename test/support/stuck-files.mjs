// A test reporter for run.mjs. It reports the files that exceeded their time limit before any of their tests had a
// result, how many other tests failed, and after a file exceeded its limit the tests that had begun and not ended.

/**
 * @param {AsyncIterable<{ type: string, data: { name: string, file?: string, details: { error: unknown } } }>} events
 * the events of `node:test`
 */
export default async function* (events) {
  /** @type {Set<string>} */
  const begun = new Set();
  /** @type {Set<string>} */
  const outOfTime = new Set();
  /** @type {string[]} the tests and suites that have begun and not ended */
  const open = [];
  let failed = 0;
  for await (const { type, data } of events) {
    const isWholeFile = data.name === data.file;
    if (type === 'test:dequeue' && !isWholeFile) open.push(data.name);
    if (type === 'test:complete' && open.includes(data.name)) open.splice(open.lastIndexOf(data.name), 1);
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (!isWholeFile) begun.add(String(data.file));
    if (type === 'test:pass') continue;
    // When a whole file exceeds its time limit, the event's name is the path of the file.
    const { failureType } = /** @type {{ failureType?: string }} */ (data.details.error);
    if (isWholeFile && failureType === 'testTimeoutFailure') outOfTime.add(data.name);
    else failed++;
  }
  const stuck = [...outOfTime].filter((file) => !begun.has(file));
  const unended = outOfTime.size === 0 ? [] : open;
  yield JSON.stringify({ stuck, unended, failed: failed + outOfTime.size - stuck.length });
}
