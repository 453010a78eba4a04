// Lists the files of the bundle that the processes of a service load.
import { readFileSync, writeFileSync } from 'node:fs';

export interface LoadedFiles {
  /** NODE_OPTIONS of the service. */
  readonly nodeOptions: string;
  /** Returns the parts that were loaded and have one of the names. A part that is imported alone has a file. */
  named(...names: string[]): readonly string[];
}

/** @param list the path of a file in which each process writes what it loads */
export function watchLoadedFiles(list: string): LoadedFiles {
  writeFileSync(list, '');
  const dataUrl = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;
  const hooks = `import { appendFileSync } from 'node:fs';
    export async function load(url, context, next) { appendFileSync(${JSON.stringify(list)}, url + '\\n'); return next(url, context); }`;
  const preload = `import { register } from 'node:module'; register(${JSON.stringify(dataUrl(hooks))});`;
  return {
    nodeOptions: `--import=${dataUrl(preload)}`,
    named: (...names) =>
      readFileSync(list, 'utf8').match(new RegExp(`/(?:${names.join('|')})(?:-\\w+)?\\.js`, 'g')) ?? [],
  };
}
