// Measures what the tests notice: turns one mutation of src on after the other, and runs the quick tests that reach the
// place. A seed always picks the same places of the same sources.
//
//   npm run mutate -- --seed S [--count N] [--room R]
//
// All mutations are compiled into one copy of the checkout (mutants.mjs). First, each file of tests runs once without a
// mutation, which shows the places that it reaches. A process that a test starts with an environment of its own reaches
// nothing, so what only such processes run counts as not noticed.
import { spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { testsOf } from './importers.mjs';
import { addMutations } from './mutants.mjs';

/**
 * @typedef {import('./mutants.mjs').Mutation} Mutation
 *
 * @typedef {object} Sound a file of tests, run without a mutation
 * @property {number} ms
 * @property {Set<string>} failures the tests that fail without a mutation: they read the sources, or their size
 * @property {Set<number>} reached the mutations that the file reaches
 *
 * @typedef {{ code: number | null, failures: Set<string>, ms: number }} Run
 */

const root = join(import.meta.dirname, '..');
const SWITCH = join(root, 'test/mutation-switch.mjs');
/** Tests that read the sources as texts, and the tests of the tests. */
const READS_SOURCES = /^test\/(?:[\w-]+\.test\.ts|support\/)/;
/** Milliseconds of a run of tests, in addition to four times what it takes without a mutation. */
const PATIENCE = 20_000;

const { values } = parseArgs({
  options: { seed: { type: 'string' }, count: { type: 'string' }, room: { type: 'string' }, help: { type: 'boolean' } },
});
if (values.seed === undefined) {
  console.error('Usage: npm run mutate -- --seed S [--count N] [--room R]');
  process.exit(values.help === true ? 0 : 1);
}
const { seed, room } = values;
const count = Number(values.count ?? 20);

const work = mkdtempSync(join(tmpdir(), 'gatefold-mutate-'));
// Databases and deployments of the tests run as other users. Without access, their tests fail for any mutation.
chmodSync(work, 0o755);
/** @type {Set<() => void>} ends the tests that run */
const ends = new Set();
/** @type {Promise<unknown>} the check of types that began last; all use one folder */
let lastCheck = Promise.resolve();
let begunPlaces = 0;
let tried = 0;
let noticed = 0;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));
process.on('exit', () => {
  // Tests that still run would write to the folder.
  for (const end of ends) end();
  rmSync(work, { recursive: true, force: true, maxRetries: 5 });
  console.log(`${noticed} of ${tried} noticed (${Math.round((100 * noticed) / Math.max(1, tried))} %)`);
});

const checkout = copyCheckout('mutants');
const mutations = readdirSync(join(checkout, 'src'), { recursive: true, encoding: 'utf8' })
  .map((name) => `src/${name.replaceAll('\\', '/')}`)
  .filter((name) => name.endsWith('.ts'))
  .sort()
  .reduce((/** @type {Mutation[]} */ all, file) => {
    const { code, mutations } = addMutations(file, readFileSync(join(checkout, file), 'utf8'), all.length);
    writeFileSync(join(checkout, file), code);
    all.push(...mutations);
    return all;
  }, []);
await run(checkout, ['build.mjs']);
const { compile } = await import(join(checkout, 'test/compile.mjs'));
await compile(join(checkout, 'compiled'));
const plain = copyCheckout('plain');
const sound = await runAllTests();
const places = choosePlaces();
await inParallel(availableParallelism(), async () => {
  while (begunPlaces++ < count) {
    const place = await nextPlace();
    if (place === undefined) return;
    const begun = performance.now();
    const failure = await findFailure(place);
    tried++;
    if (failure !== undefined) noticed++;
    const seconds = Math.round((performance.now() - begun) / 1000);
    console.log(`${describe(place)}\n    ${failure ?? 'NOT NOTICED'} (${seconds} s)`);
  }
});

/** @param {string} name @returns {string} the copy, whose node_modules is that of the checkout */
function copyCheckout(name) {
  const copy = join(work, name);
  const isLeftOut = (/** @type {string} */ path) => /[\\/](?:\.git|node_modules|dist|coverage)$/.test(path);
  cpSync(root, copy, { recursive: true, filter: (path) => !isLeftOut(path) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Runs each quick file of tests once. @returns {Promise<ReadonlyMap<string, Sound>>} */
async function runAllTests() {
  const files = readdirSync(join(checkout, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => `test/${name.replaceAll('\\', '/')}`)
    .filter((name) => name.endsWith('.test.ts') && !READS_SOURCES.test(name));
  /** @type {Map<string, Sound>} */
  const sound = new Map();
  const queue = files.values();
  await inParallel(availableParallelism() + 1, async () => {
    for (const file of queue) {
      const list = join(work, `reached-${sound.size}-${file.replaceAll('/', '-')}`);
      const { code, failures, ms } = await runTests(file, { REACHED_FILE: list }, 10 * PATIENCE);
      const ids = existsSync(list) ? readFileSync(list, 'utf8').trim().split('\n').map(Number) : [];
      if (code === 0 || failures.size > 0) sound.set(file, { ms, failures, reached: new Set(ids) });
      if (failures.size > 0) console.log(`${file}: ${[...failures][0]} fails without a mutation, too`);
    }
  });
  return sound;
}

/** Returns the places in the order of the seed: a kind of mutation, and then a place. */
function* choosePlaces() {
  const random = createRandom(/** @type {string} */ (seed));
  const pick = (/** @type {number} */ length) => Math.floor(random() * length);
  /** @type {Map<string, Mutation[]>} */
  const byKind = new Map();
  for (const mutation of mutations) {
    const { file, kind } = mutation;
    if (room !== undefined && !file.startsWith(`src/${room}/`) && file !== `src/${room}.ts`) continue;
    const list = byKind.get(kind);
    if (list === undefined) byKind.set(kind, [mutation]);
    else list.push(mutation);
  }
  while (byKind.size > 0) {
    const [kind = '', list = []] = [...byKind][pick(byKind.size)] ?? [];
    yield* list.splice(pick(list.length), 1);
    if (list.length === 0) byKind.delete(kind);
  }
}

/** Returns the next place. A mutation that the types refuse measures no test, so another one takes its place. */
async function nextPlace() {
  for (;;) {
    const { value, done } = places.next();
    if (done === true) return undefined;
    if (await passesTypes(value)) return value;
  }
}

/** @param {Mutation} mutation @returns {Promise<boolean>} */
async function passesTypes({ file, start, end, text }) {
  const check = async () => {
    const original = readFileSync(join(root, file), 'utf8');
    writeFileSync(join(plain, file), original.slice(0, start) + text + original.slice(end));
    // TypeScript checks only what the change can concern.
    const words = ['-p', 'tsconfig.json', '--incremental', '--tsBuildInfoFile', join(work, 'checked')];
    const { code } = await run(plain, ['node_modules/typescript/bin/tsc', ...words]);
    writeFileSync(join(plain, file), original);
    return code === 0;
  };
  const result = lastCheck.then(check);
  lastCheck = result;
  return result;
}

/**
 * Returns the first test that notices the mutation: the nearest tests first, and then the fastest. The test must fail a
 * second time, because on a busy machine a test may fail by chance.
 *
 * @param {Mutation} mutation
 */
async function findFailure({ id, file }) {
  const { room, direct } = testsOf(root, file);
  const folder = dirname(file).replace('src/', 'test/');
  const distance = (/** @type {string} */ test) =>
    direct.includes(test) ? 0 : dirname(test) === folder ? 1 : room.includes(test) ? 2 : 3;
  const tests = [...sound]
    .filter(([, { reached }]) => reached.has(id))
    .sort(([one, { ms }], [other, { ms: otherMs }]) => distance(one) - distance(other) || ms - otherMs);
  for (const [test, { ms, failures }] of tests) {
    const newFailure = async () => {
      const result = await runTests(test, { MUTATION: String(id) }, 4 * ms + PATIENCE);
      const found = [...result.failures].find((name) => !failures.has(name));
      if (result.code === null) return found ?? 'it does not end in time';
      return found ?? (result.code === 0 || result.failures.size > 0 ? undefined : `exit ${result.code}`);
    };
    const failure = await newFailure();
    if (failure !== undefined && (await newFailure()) !== undefined) return `${test}: ${failure}`;
  }
  return undefined;
}

/** @param {string} file @param {NodeJS.ProcessEnv} env @param {number} limit in milliseconds @returns {Promise<Run>} */
async function runTests(file, env, limit) {
  const TMPDIR = mkdtempSync(join(work, 'tmp-'));
  chmodSync(TMPDIR, 0o1777);
  const words = ['--enable-source-maps', '--test-reporter=tap', join('compiled', file.replace(/\.ts$/, '.js'))];
  const all = { ...process.env, ...env, TMPDIR, NODE_OPTIONS: `--import=${SWITCH}` };
  const result = await run(checkout, words, all, limit);
  rmSync(TMPDIR, { recursive: true, force: true, maxRetries: 5 });
  return result;
}

/**
 * Runs Node in a group of processes, which ends with it.
 *
 * @param {string} cwd @param {string[]} words @param {NodeJS.ProcessEnv} env @param {number} limit in milliseconds
 * @returns {Promise<Run>}
 */
async function run(cwd, words, env = process.env, limit = 10 * PATIENCE) {
  const begun = performance.now();
  const child = spawn(process.execPath, words, { cwd, env, stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  const pid = /** @type {number} */ (child.pid);
  const end = () => {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // All processes of the group have ended.
    }
  };
  ends.add(end);
  const timer = setTimeout(end, limit);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const [code] = await new Promise((resolve) => child.once('exit', (...result) => resolve(result)));
  clearTimeout(timer);
  end();
  ends.delete(end);
  const failed = output.matchAll(/^ *not ok \d+ - (?!.*# (?:SKIP|TODO))(.*)/gm);
  return { code, failures: new Set(Array.from(failed, ([, name = '']) => name)), ms: performance.now() - begun };
}

/** @param {number} lanes @param {() => Promise<void>} work */
async function inParallel(lanes, work) {
  await Promise.all(Array.from({ length: lanes }, work));
}

/** @param {Mutation} mutation */
function describe({ file, kind, start, end, text }) {
  const original = readFileSync(join(root, file), 'utf8');
  const line = original.slice(0, start).split('\n').length;
  const short = (/** @type {string} */ code) => code.replace(/\s+/g, ' ').slice(0, 70);
  return `${file}:${line}  ${kind}: ${short(original.slice(start, end))}  →  ${short(text)}`;
}

/** mulberry32, begun with a hash of the seed. @param {string} seed @returns {() => number} */
function createRandom(seed) {
  let state = [...seed].reduce((hash, letter) => Math.imul(hash ^ letter.charCodeAt(0), 0x01000193), 0x811c9dc5);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
