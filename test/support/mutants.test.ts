// A mutation that is on does what the same change of the source does, and without one the code does what it did.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { transform } from 'esbuild';
import { addMutations } from '../mutants.mjs';

const SOURCE = `#!/usr/bin/env node
// A comment.
import { join } from 'node:path';
export const enum Kind { a = 1 }
interface Shape { kind: 'a'; size?: 5 }
const TABLE: Readonly<Record<string, 1 | 2>> = { 'a-b': 1, 2: 2 };
class Refusal extends Error { override name = 'Refusal'; }
export function run(size: number, list: string[], isLast = false): unknown {
  const seen: unknown[] = [];
  if (size < 0) throw new Refusal(\`no \${size < -1 && 'such '}size\`);
  if (size >= 3 && list.length > 1 || isLast) seen.push('long', true);
  else if (size === 2) seen.push(size <= 2 ? { 'a b': false } : null);
  for (const text of list) {
    if (text !== 'b') continue;
    seen.push(join(text, \`x\`), TABLE['a-b'], typeof text as Shape['kind']);
  }
  const add = () => {
    if (seen.length > 4) return;
    seen.push(seen.length);
  };
  add();
  return seen;
}
`;
const INPUTS: readonly Parameters<(size: number, list: string[], isLast?: boolean) => void>[] = [
  ...[-2, -1, 0, 1, 2, 3, 4].flatMap((size) => [[], ['b'], ['a', 'b']].map((list) => [size, list] as const)),
  [1, ['b', 'b'], true],
].map(([size, list, isLast]) => [size as number, list as string[], isLast as boolean | undefined]);

/** Returns what the code answers to all inputs. */
async function answersOf(source: string): Promise<unknown[]> {
  const { code } = await transform(source, { loader: 'ts', format: 'esm', target: 'node20' });
  const { run } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  return INPUTS.map((input) => {
    try {
      return run(...input);
    } catch (error) {
      return String(error);
    }
  });
}

test('each mutation does what the change of the source does', async () => {
  const { code, mutations } = addMutations('src/a.ts', SOURCE, 100);
  const kinds = new Set(mutations.map(({ kind }) => kind));
  assert.equal(kinds.size, 6);
  const original = await answersOf(SOURCE);
  assert.deepEqual(await answersOf(code), original);
  let different = 0;
  for (const { id, kind, start, end, text } of mutations) {
    const on = code.replace('globalThis.isMutationOn ??', `((id) => id === ${id}) ??`);
    const changed = await answersOf(SOURCE.slice(0, start) + text + SOURCE.slice(end));
    assert.deepEqual(await answersOf(on), changed, `${kind}: ${SOURCE.slice(start, end)} → ${text}`);
    try {
      assert.notDeepEqual(changed, original);
      different++;
    } catch {
      // This change has no effect on the inputs.
    }
  }
  assert.ok(different > mutations.length * 0.8, `${different} of ${mutations.length}`);
});
