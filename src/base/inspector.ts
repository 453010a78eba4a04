// The inspector is Node's port for debuggers. While it is open, a breakpoint can stop this process for as long as a
// person thinks, so no time limit may count.
let inspector: typeof import('node:inspector') | undefined;

export type InspectorAddress = Readonly<ReturnType<typeof parseInspectorAddress>>;

/** `--inspect-port` and `--inspect-publish-uid` open nothing. */
const OPENS_INSPECTOR = /(?:^|\s)--inspect(?:-brk|-wait)?(?:=|\s|$)/;

export function asksForInspector(words: readonly string[] = process.execArgv): boolean {
  return [...words, process.env.NODE_OPTIONS ?? ''].some((word) => OPENS_INSPECTOR.test(word));
}

/** Parses the value of `--inspect`. @throws Error with a message of one line */
export function parseInspectorAddress(text: string) {
  const [, host = '127.0.0.1', port = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? [];
  if (port === '' || Number(port) > 65_535)
    throw new Error(`--inspect: ${JSON.stringify(text)} is not a port or HOST:PORT`);
  return { host, port: Number(port) };
}

/** Lets `isInspected` answer. A process that nobody debugs does not load the inspector. */
export async function watchInspector(): Promise<void> {
  inspector = await import('node:inspector');
}

export function isInspected(): boolean {
  return inspector?.url() !== undefined;
}

/** Closes the inspector, and opens it at another address. @returns its URL, or undefined when it is closed */
export function moveInspector(address?: InspectorAddress): string | undefined {
  if (isInspected()) inspector?.close();
  if (address !== undefined) inspector?.open(address.port, address.host);
  return inspector?.url();
}
