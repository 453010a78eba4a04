// The browser that some tests drive: Debian's Chromium, headless. Where there is none, those tests skip and say so.
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

/** For the `skip` of a suite. */
export const noChromium: string | false = PATH === undefined ? 'no Chromium is installed' : false;

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: PATH as string, args: FLAGS });
}
