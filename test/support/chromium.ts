// The browser that some tests drive: Debian's Chromium, headless. On a machine without it, these tests are skipped.
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

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

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: PATH as string, args: FLAGS });
}
