// Measures what the tests notice: changes one place of src after the other, in a copy of the checkout, and runs the tests
// that reach the place. A seed always picks the same places of the same sources.
//
//   npm run mutate -- --seed S [--count N] [--room R]
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import ts from 'typescript-5';
import { testsOf } from './importers.mjs';

/**
 * @typedef {object} Mutation
 * @property {string} file
 * @property {string} kind
 * @property {number} start
 * @property {number} end
 * @property {string} text the code in place of the old code
 *
 * @typedef {{ name: string, file: string | undefined }} Failure a test that failed, and its file
 */

const root = join(import.meta.dirname, '..');
const TSC = join(root, 'node_modules/typescript/bin/tsc');
const BOUNDARIES = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
]);
const LOGIC = new Map([
  ['&&', '||'],
  ['||', '&&'],
  ['===', '!=='],
  ['!==', '==='],
]);

/** Each kind of mutation returns the text that replaces a node, or undefined where it does not fit. */
const KINDS = {
  /** @type {(node: ts.Node) => [ts.Node, string] | undefined} */
  'negated condition': (node) => {
    if (ts.isIfStatement(node) || ts.isConditionalExpression(node)) {
      const condition = ts.isIfStatement(node) ? node.expression : node.condition;
      return [condition, `!(${condition.getText()})`];
    }
    return replaceOperator(node, LOGIC);
  },
  'boundary': (/** @type {ts.Node} */ node) => replaceOperator(node, BOUNDARIES),
  /** @type {(node: ts.Node) => [ts.Node, string] | undefined} */
  'removed statement': (node) =>
    ts.isExpressionStatement(node) || ts.isThrowStatement(node) || ts.isContinueStatement(node) || isBareReturn(node)
      ? [node, ';']
      : undefined,
  /** @type {(node: ts.Node) => [ts.Node, string] | undefined} */
  'changed constant': (node) => {
    if (ts.isNumericLiteral(node)) return [node, `(${node.getText()} + 1)`];
    if (node.kind === ts.SyntaxKind.TrueKeyword) return [node, 'false'];
    return node.kind === ts.SyntaxKind.FalseKeyword ? [node, 'true'] : undefined;
  },
  /** @type {(node: ts.Node) => [ts.Node, string] | undefined} */
  'swapped branch': (node) => {
    if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse.getText()];
    return ts.isIfStatement(node) && node.elseStatement !== undefined
      ? [node.thenStatement, node.elseStatement.getText()]
      : undefined;
  },
  /** @type {(node: ts.Node) => [ts.Node, string] | undefined} */
  'emptied string': (node) =>
    (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateExpression(node)) &&
    node.getText().length > 2 &&
    !(ts.isPropertyAssignment(node.parent) && node.parent.name === node)
      ? [node, "''"]
      : undefined,
};

/** @type {number | undefined} the group of processes of the tests that run */
let runningTests;

const { values } = parseArgs({
  options: { seed: { type: 'string' }, count: { type: 'string' }, room: { type: 'string' } },
});
if (values.seed === undefined) {
  console.error('Usage: npm run mutate -- --seed S [--count N] [--room R]');
  process.exit(1);
}
await main(values.seed, Number(values.count ?? 20), values.room);

/** @param {string} seed @param {number} count @param {string | undefined} room */
async function main(seed, count, room) {
  const places = findPlaces(room);
  const random = createRandom(seed);
  const work = mkdtempSync(join(tmpdir(), 'gatefold-mutate-'));
  // Databases and deployments of the tests run as other users. Without access, their tests fail for any mutation.
  chmodSync(work, 0o755);
  let tried = 0;
  let noticed = 0;
  /** The files of tests that pass without a mutation. */
  const sound = new Set();
  const end = () => {
    rmSync(work, { recursive: true, force: true, maxRetries: 5 });
    console.log(`${noticed} of ${tried} noticed (${Math.round((100 * noticed) / Math.max(1, tried))} %)`);
  };
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.on(signal, () => {
      // Tests that still run would write to the folder.
      if (runningTests !== undefined) process.kill(-runningTests, 'SIGKILL');
      end();
      process.exit(130);
    });
  try {
    const checkout = copyCheckout(work);
    while (tried < count) {
      const kinds = [...places.keys()];
      const mutations = places.get(kinds[Math.floor(random() * kinds.length)] ?? '') ?? [];
      const [mutation] = mutations.splice(Math.floor(random() * mutations.length), 1);
      if (mutation === undefined) continue;
      const original = readFileSync(join(root, mutation.file), 'utf8');
      const mutated = original.slice(0, mutation.start) + mutation.text + original.slice(mutation.end);
      const begun = performance.now();
      const build = (/** @type {string} */ text) => {
        writeFileSync(join(checkout, mutation.file), text);
        return runQuietly(checkout, 'build.mjs');
      };
      const passes = async (/** @type {string} */ test) => {
        if (sound.has(test)) return true;
        build(original);
        const passed = (await runTests(checkout, [test], join(work, 'tmp'))) === undefined;
        if (passed) sound.add(test);
        else console.log(`${test} fails without a mutation, too`);
        build(mutated);
        return passed;
      };
      // A mutation that the types refuse measures no test, so another one takes its place.
      if (build(mutated) && runQuietly(checkout, TSC, '-p', 'tsconfig.json')) {
        const failure = await findFailure(checkout, mutation.file, join(work, 'tmp'), passes);
        tried++;
        if (failure !== undefined) noticed++;
        const seconds = Math.round((performance.now() - begun) / 1000);
        console.log(`${describe(mutation, original)}\n    ${failure ?? 'NOT NOTICED'} (${seconds} s)`);
      }
      writeFileSync(join(checkout, mutation.file), original);
    }
  } finally {
    end();
  }
}

/** Finds all mutations of each kind. @param {string | undefined} room */
function findPlaces(room) {
  /** @type {Map<string, Mutation[]>} */
  const places = new Map(Object.keys(KINDS).map((kind) => [kind, []]));
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  for (const name of names.filter((name) => name.endsWith('.ts')).sort()) {
    const file = `src/${name.replaceAll('\\', '/')}`;
    if (room !== undefined && !file.startsWith(`src/${room}/`) && file !== `src/${room}.ts`) continue;
    const source = ts.createSourceFile(file, readFileSync(join(root, file), 'utf8'), ts.ScriptTarget.ES2023, true);
    const visit = (/** @type {ts.Node} */ node) => {
      if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
      for (const [kind, mutate] of Object.entries(KINDS)) {
        const [target, text = ''] = mutate(node) ?? [];
        if (target !== undefined)
          places.get(kind)?.push({ file, kind, start: target.getStart(), end: target.end, text });
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  return places;
}

/** @param {ts.Node} node @param {ReadonlyMap<string, string>} others @returns {[ts.Node, string] | undefined} */
function replaceOperator(node, others) {
  if (!ts.isBinaryExpression(node)) return undefined;
  const other = others.get(node.operatorToken.getText());
  return other === undefined ? undefined : [node.operatorToken, other];
}

/** @param {ts.Node} node */
function isBareReturn(node) {
  return ts.isReturnStatement(node) && node.expression === undefined;
}

/** @param {string} work @returns {string} the copy, whose node_modules is that of the checkout */
function copyCheckout(work) {
  const checkout = join(work, 'checkout');
  const { stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8' });
  for (const file of stdout.split('\0').filter((file) => file !== '' && !file.startsWith('node_modules'))) {
    mkdirSync(join(checkout, dirname(file)), { recursive: true });
    cpSync(join(root, file), join(checkout, file));
  }
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'));
  return checkout;
}

/** @param {string} cwd @param {string[]} words */
function runQuietly(cwd, ...words) {
  return spawnSync(process.execPath, words, { cwd, stdio: 'ignore' }).status === 0;
}

/**
 * Returns the name of the first test that fails, the nearest first: those of the file's folder or that import the file,
 * those of its room, and all that reach it. The test must fail a second time, because on a busy machine a test may fail
 * by chance, and must pass without the mutation.
 *
 * @param {string} cwd @param {string} file @param {string} tmp
 * @param {(test: string) => Promise<boolean>} passes says whether a file of tests passes without the mutation
 */
async function findFailure(cwd, file, tmp, passes) {
  const { room, direct, far } = testsOf(cwd, file);
  const folder = dirname(file).replace('src/', 'test/');
  const near = room.filter((test) => dirname(test) === folder);
  for (let tests of [[...direct, ...near], room.filter((test) => !near.includes(test)), far]) {
    while (tests.length > 0) {
      const failure = await runTests(cwd, tests, tmp);
      if (failure === undefined) break;
      const { file: failed, name } = failure;
      if (failed === undefined) return name;
      if ((await runTests(cwd, [failed], tmp)) !== undefined && (await passes(failed))) return `${failed}: ${name}`;
      tests = tests.filter((one) => one !== failed);
    }
  }
  return undefined;
}

/** @param {string} cwd @param {string[]} tests @param {string} tmp @returns {Promise<Failure | undefined>} */
async function runTests(cwd, tests, tmp) {
  rmSync(tmp, { recursive: true, force: true, maxRetries: 5 });
  mkdirSync(tmp, { mode: 0o1777 });
  const words = ['test/run.mjs', '--test-reporter=tap', '--test-concurrency=2', ...tests];
  const child = spawn(process.execPath, words, {
    cwd,
    env: { ...process.env, TMPDIR: tmp },
    stdio: ['ignore', 'pipe', 'ignore'],
    // A group of its own, which ends as a whole at the first failure.
    detached: true,
  });
  runningTests = child.pid;
  let output = '';
  /** @type {Failure | undefined} */
  let failure;
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
    const found = /^ *not ok \d+ - (?!.*# (?:SKIP|TODO))(.*)/m.exec(output);
    // run.mjs makes a suite of each file.
    const file = [...output.slice(0, found?.index).matchAll(/^# Subtest: (test\/\S+)$/gm)].at(-1)?.[1];
    if (found !== null) failure ??= { name: found[1] ?? '', file };
    if (failure !== undefined && child.pid !== undefined && child.exitCode === null) process.kill(-child.pid);
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  runningTests = undefined;
  return failure ?? (code === 0 ? undefined : { name: `exit ${code}`, file: undefined });
}

/** @param {Mutation} mutation @param {string} original */
function describe({ file, kind, start, end, text }, original) {
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
