// The browser that some tests drive: Debian's Chromium, headless. On a machine without it, these tests are skipped.
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const PATH = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** The `skip` option of a suite that needs the browser. */
export const noChromium: string | false = PATH === undefined ? 'no Chromium is installed' : false;

/** Milliseconds that a page waits for a state. Beside other tests, the browser gets little of a core. */
const PATIENCE = 180_000;

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: PATH as string, args: FLAGS, timeout: PATIENCE });
}

/** Opens a page, in a context of its own or in a given one. */
export async function openPage(from: Browser | BrowserContext, options: BrowserContextOptions = {}): Promise<Page> {
  const page = 'newContext' in from ? await from.newPage(options) : await from.newPage();
  page.setDefaultTimeout(PATIENCE);
  return page;
}
