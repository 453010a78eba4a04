// Service files whose tasks note what they do in a file, a line a note.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { controller, createFolder, type Service, startService, write } from './cluster-server.ts';

/** A task that runs until it is aborted. */
export const CONSUME = `async consume({ signal }) { note('consume'); await aborted(signal); note('consume-end'); }`;

export interface Note {
  readonly pid: number;
  readonly what: string;
  readonly at: number;
  readonly due?: string;
}

/** The begin of a service file. `note` writes a line, and `aborted` waits for the abort of a signal. */
export function head(notes: string): string {
  return `import { appendFileSync } from 'node:fs';
import { defineService } from 'gatefold';
const note = (what, dueAt) => appendFileSync(${JSON.stringify(notes)},
  JSON.stringify({ pid: process.pid, what, at: Date.now(), due: dueAt?.toISOString() }) + '\\n');
const aborted = (signal) => new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
`;
}

export const notesOf = (dir: string): string => join(dirname(dir), 'notes');

export function readNotes(path: string): Note[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Note);
}

/** Resolves with the notes when `test` accepts them. */
export async function noted(
  path: string,
  test: (notes: readonly Note[]) => boolean,
  patience = 120_000,
): Promise<Note[]> {
  const deadline = performance.now() + patience;
  for (;;) {
    const notes = readNotes(path);
    if (test(notes)) return notes;
    if (performance.now() > deadline) throw new Error(`not noted: ${JSON.stringify(notes.slice(-20))}`);
    await sleep(50);
  }
}

/** Resolves when so many notes say `what`. */
export function notedTimes(path: string, what: string, count: number): Promise<Note[]> {
  return noted(path, (notes) => notes.filter((note) => note.what === what).length >= count);
}

/** Returns how many runs of a task were under way at once at most: each has a note `NAME` and a note `NAME-end`. */
export function mostAtOnce(notes: readonly Note[], name: string): number {
  let [now, most] = [0, 0];
  for (const { what } of notes) {
    if (what === name) most = Math.max(most, ++now);
    if (what === `${name}-end`) now--;
  }
  return most;
}

/** Starts the built service with a service file of these options. `edit` writes the file anew. */
export async function startWithTasks(t: TestContext, options: string, env: Record<string, string> = {}) {
  let service: Service | undefined;
  // The state of the tasks is written until the service ends, and only then its folder is removed.
  t.after(async () => {
    service?.process.kill('SIGTERM');
    await service?.exited;
  });
  const dir = createFolder(t, { 'TestController.js': controller('test') });
  const notes = notesOf(dir);
  const edit = (text: string, before = '') =>
    write(dir, 'service.js', `${head(notes)}${before}export default defineService({ ${text} });\n`);
  edit(options);
  service = await startService(t, { dir, env });
  return { service, notes, edit, dir };
}
