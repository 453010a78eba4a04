// Parses `HOST[:DIR]`, an operand of `gatefold deploy`. HOST is passed to ssh as it is, and may have a user:
// `root@vm.example.com:/srv/shop`, `[::1]:app`, `ssh://vm:2222/srv/shop`.
import { isIPv6 } from 'node:net';
import { UsageError } from '../command.ts';

export interface Target {
  readonly name: string;
  readonly host: string;
  /** The folder of the project on the machine. A relative path begins at the home folder of the user. */
  readonly dir: string;
}

/** @param project the name of the project, for the default folder `/srv/PROJECT`. @throws UsageError */
export function parseTarget(name: string, project: string): Target {
  const { host, dir } = splitTarget(name);
  const quoted = JSON.stringify(name);
  if (host === '' || /^-|[\s\p{Cc}]/u.test(host)) throw new UsageError(`${quoted} names no host`);
  // Node cannot import files from a folder with a backslash in its name.
  if (/[\p{Cc}\\]/u.test(dir)) throw new UsageError(`${quoted} has a control character or a backslash in its folder`);
  if (/^\/+$/.test(dir)) throw new UsageError(`${quoted}: the folder of a project is not /`);
  if (dir.startsWith('~'))
    throw new UsageError(`${quoted}: write the folder without ~/; a relative one begins at the home`);
  if (dir.split('/').includes('..')) throw new UsageError(`${quoted}: write the folder without ..`);
  return { name, host, dir: dir === '' ? `/srv/${project}` : dir.replace(/\/+$/, '') };
}

/** Splits a target at the colon before its folder. The folder is empty when the target has none. */
function splitTarget(name: string): { host: string; dir: string } {
  const url = /^(ssh:\/\/[^/]*)(\/.*)?$/.exec(name);
  if (url !== null) return { host: url[1] as string, dir: url[2] ?? '' };
  // `root@[::1]:app` is the host `root@::1`, because ssh takes an IPv6 address without brackets.
  const [, user = '', address = '', rest = ''] = /^([^/:[\]]*@)?\[([^\]]*)\](?::(.*))?$/s.exec(name) ?? [];
  if (address !== '') return { host: user + address, dir: rest };
  const colon = name.indexOf(':');
  if (colon < 0 || isIPv6(name.slice(name.lastIndexOf('@') + 1))) return { host: name, dir: '' };
  return { host: name.slice(0, colon), dir: name.slice(colon + 1) };
}
