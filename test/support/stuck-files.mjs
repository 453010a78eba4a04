// A test reporter for run.mjs. It reports the files that exceeded their time limit before any of their tests had a
// result, and how many other tests failed.

/**
 * @param {AsyncIterable<{ type: string, data: { name: string, file?: string, details: { error: unknown } } }>} events
 * the events of `node:test`
 */
export default async function* (events) {
  /** @type {Set<string>} */
  const begun = new Set();
  /** @type {Set<string>} */
  const outOfTime = new Set();
  let failed = 0;
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.name !== data.file) begun.add(String(data.file));
    if (type === 'test:pass') continue;
    // When a whole file exceeds its time limit, the event's name is the path of the file.
    const { failureType } = /** @type {{ failureType?: string }} */ (data.details.error);
    if (data.name === data.file && failureType === 'testTimeoutFailure') outOfTime.add(data.name);
    else failed++;
  }
  const stuck = [...outOfTime].filter((file) => !begun.has(file));
  yield JSON.stringify({ stuck, failed: failed + outOfTime.size - stuck.length });
}
