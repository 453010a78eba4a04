// The naming half of the filesystem convention: which files of a folder are controllers, and which group each is.
// The one copy of these rules; the gateway, the supervisor and the commands all ask here.
import { type Dirent, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const GROUP_NAME = /^[A-Za-z][A-Za-z0-9_-]*$/;
const CONTROLLER_FILE = /^([A-Z][A-Za-z0-9_-]*)Controller\.(ts|mjs|js)$/;
const SERVICE_FILE = /^service\.(ts|mjs|js)$/;
/** The service file in a list of groups. No URL names it: a group begins with an upper case letter. */
export const SERVICE = 'service';
/** Earlier wins where one group has several files. */
const EXTENSIONS = ['ts', 'mjs', 'js'];

/** What a file's name says: `TestController.ts` → `Test` and `ts`; undefined for a name that no controller has. */
export function parseFileName(name: string): { readonly group: string; readonly extension: string } | undefined {
  const [, service] = SERVICE_FILE.exec(name) ?? [];
  if (service !== undefined) return { group: SERVICE, extension: service };
  const [, group, extension] = CONTROLLER_FILE.exec(name) ?? [];
  return group === undefined || extension === undefined ? undefined : { group, extension };
}

/** `test` → `Test`; undefined for what cannot name a group, such as `..`, `__proto__` or `a.b`. */
export function groupNameOf(page: string): string | undefined {
  return GROUP_NAME.test(page) ? page.charAt(0).toUpperCase() + page.slice(1) : undefined;
}

/**
 * Group name → file name, of every controller in `dir`, names exactly as the folder lists them: a name out of a URL is
 * only ever compared with these, so neither `..` nor the letter case of a lenient disk can reach another file.
 *
 * @throws what `readdir` throws: ENOENT, ENOTDIR, EACCES
 */
export function listControllers(dir: string): Map<string, string> {
  const files = new Map<string, string>();
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const parsed = parseFileName(entry.name);
    if (parsed === undefined || !isFile(dir, entry)) continue;
    const { group, extension } = parsed;
    const rival = files.get(group);
    if (
      rival === undefined ||
      EXTENSIONS.indexOf(extension) < EXTENSIONS.indexOf(rival.slice(rival.lastIndexOf('.') + 1))
    ) {
      files.set(group, entry.name);
    }
  }
  return files;
}

/** A file or a link to one (mounted volumes are links); a folder, a pipe or a dangling link is no controller. */
function isFile(dir: string, entry: Dirent): boolean {
  if (entry.isFile()) return true;
  if (!entry.isSymbolicLink()) return false;
  try {
    return statSync(join(dir, entry.name)).isFile();
  } catch {
    return false;
  }
}

/** In the mode of a file or folder: whoever can write to what the service runs or trusts runs code as its user. */
export const WRITABLE_BY_EVERYONE = 0o002;
