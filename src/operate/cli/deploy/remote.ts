// The commands that a deployment runs on the target machine, as texts for sh. `probeCommand` reports the state of the
// machine, `receiveCommand` brings a copy of Gatefold, and `orderCommand` runs machine.ts in that copy.
import { isObject } from '../../../base/values.ts';
import { DEPLOY_ON_MACHINE, type Order } from './order.ts';
import { MARK, quote } from './ssh.ts';

export interface Machine {
  readonly node: string | null;
  readonly dir: string;
  readonly isSetUp: boolean;
  readonly hasGatefoldCopy: boolean;
  /** The error code, such as EACCES, when the user cannot write to the folder. */
  readonly refusal?: string;
  /** A path that other users can change, so that they could run programs as the user that deploys. */
  readonly writableByOthers?: string;
  readonly user: string;
}

/** Returns whether a line of JSON is the answer of PROBE_SCRIPT, because a machine can print any JSON. */
export function isMachine(value: unknown): value is Machine {
  if (!isObject(value)) return false;
  const { node, dir, user, isSetUp, hasGatefoldCopy, refusal = '', writableByOthers = '' } = value;
  if (node === null) return true;
  const areFlags = [isSetUp, hasGatefoldCopy].every((flag) => typeof flag === 'boolean');
  return areFlags && [node, dir, user, refusal, writableByOthers].every((text) => typeof text === 'string');
}

/**
 * Prints a Machine. The syntax is old, because the Node there may be too old for Gatefold. Node's own recursive mkdir
 * never returns for /proc/x/y. The number 18 is octal 022: the write permissions of group and others; 512 is the sticky
 * bit, with which only an owner can replace a file.
 */
const PROBE_SCRIPT = `
var fs = require("fs"), path = require("path"), order = JSON.parse(process.argv[1]), dir = path.resolve(order.dir);
var answer = { node: process.versions.node, dir: dir, user: require("os").userInfo().username };
var copies = path.join(dir, "runtime");
process.umask(18);
var me = process.getuid && process.getuid();
function isOurs(stat) { return stat.uid === 0 || stat.uid === me; }
function refuse(file) { answer.writableByOthers = answer.writableByOthers || file; }
function checkAbove(file) {
  var folder = path.dirname(file), above, entry;
  if (folder === file || me === undefined) return;
  checkAbove(folder);
  try { above = fs.statSync(folder); } catch (error) { return; }
  var isOpen = (above.mode & 18) !== 0;
  if (!isOurs(above) || (isOpen && (above.mode & 512) === 0)) refuse(folder);
  try { entry = fs.lstatSync(file); } catch (error) { return; }
  if (isOpen && !isOurs(entry)) refuse(file);
  try { fs.statSync(file); } catch (error) { return; }
  if (entry.isSymbolicLink()) checkAbove(path.resolve(fs.realpathSync(folder), fs.readlinkSync(file)));
}
function make(folder) {
  if (fs.existsSync(folder)) return;
  make(path.dirname(folder));
  try { fs.mkdirSync(folder); } catch (error) { if (!fs.existsSync(folder)) throw error; }
}
checkAbove(dir);
try {
  if (order.setup && !answer.writableByOthers) make(copies);
  if (fs.existsSync(copies)) fs.accessSync(copies, fs.constants.W_OK);
} catch (error) {
  answer.refusal = error.code;
}
checkAbove(dir);
["", "env", "run", "gatefold", "restart", "releases", "runtime"].forEach(function (name) {
  var file = path.join(dir, name), stat;
  try { stat = fs.statSync(file); } catch (error) { return; }
  if (me !== undefined && ((stat.mode & 18) !== 0 || !isOurs(stat))) refuse(file);
});
answer.isSetUp = fs.existsSync(path.join(dir, "run"));
answer.hasGatefoldCopy = fs.existsSync(path.join(copies, order.gatefoldCopy, "package.json"));
console.log(${JSON.stringify(MARK)} + JSON.stringify(answer));`;

export function probeCommand(question: Pick<Order, 'dir' | 'gatefoldCopy' | 'setup'>): string {
  const answerWithoutNode = quote(`${MARK}{"node":null}`);
  const probe = `exec node -e ${quote(PROBE_SCRIPT)} ${quote(JSON.stringify(question))}`;
  return `if command -v node >/dev/null 2>&1; then ${probe}; else echo ${answerWithoutNode}; fi`;
}

/**
 * Extracts a tar stream into a temporary folder, and renames that folder. package.json comes last, so a copy that has
 * this file is complete. The rename may fail, because another deployment has just brought the same copy.
 */
const RECEIVE_SCRIPT = `
var fs = require("fs"), run = require("child_process").spawnSync, to = process.argv[1], part = to + ".part" + process.pid;
process.umask(18);
fs.mkdirSync(part);
var tar = run("tar", ["-xof", "-", "-C", part], { stdio: "inherit" });
var isWhole = tar.status === 0 && fs.existsSync(part + "/package.json");
if (isWhole && run("chmod", ["-R", "u=rwX,go=rX", part]).status === 0) {
  try { fs.renameSync(part, to); } catch (error) { if (!fs.existsSync(to)) throw error; }
}
fs.rmSync(part, { recursive: true, force: true });
if (!isWhole) { console.error(tar.error ? "there is no tar" : "Cannot extract Gatefold"); process.exit(1); }`;

export function receiveCommand(copyPath: string): string {
  return `exec node -e ${quote(RECEIVE_SCRIPT)} ${quote(copyPath)}`;
}

export function orderCommand(order: Order): string {
  const cli = `${order.dir}/runtime/${order.gatefoldCopy}/dist/cli.js`;
  return `exec node ${quote(cli)} ${DEPLOY_ON_MACHINE} ${quote(JSON.stringify(order))}`;
}
