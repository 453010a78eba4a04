// A reporter for run.mjs: the files that were out of time before a test of theirs had a result, and how much else has
// failed.

/**
 * @param {AsyncIterable<{ type: string, data: { name: string, file?: string, details: { error: unknown } } }>} events
 * as `node:test` has them
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
    // A timeout of the whole file stands under its path.
    const { failureType } = /** @type {{ failureType?: string }} */ (data.details.error);
    if (data.name === data.file && failureType === 'testTimeoutFailure') outOfTime.add(data.name);
    else failed++;
  }
  const stuck = [...outOfTime].filter((file) => !begun.has(file));
  yield JSON.stringify({ stuck, failed: failed + outOfTime.size - stuck.length });
}
