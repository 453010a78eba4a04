// TypeScript 5, for tests that ask it for the truth. It is one large CommonJS file, and an import of it costs 0.3 s of
// processor time more than `require`, because Node first searches the file for its exports.
import { createRequire } from 'node:module';

export default createRequire(import.meta.url)('typescript-5');
