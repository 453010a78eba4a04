// CORS in a real browser: a page of another origin must be able to read every answer, also errors.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { createLog } from '../../../src/base/log.ts';
import { type Credentials, createCredentials } from '../../../src/callers/credentials/credentials.ts';
import { launchChromium, noChromium } from '../../support/chromium.ts';
import { type Service, startService } from '../../support/service.ts';

interface Row {
  readonly name: string;
  readonly path: string;
  readonly init?: { readonly method?: string; readonly body?: string; readonly headers?: Record<string, string> };
  readonly status: number;
}

const JSON_TYPE = { 'Content-Type': 'application/json' };
const ROWS: Row[] = [
  { name: 'a simple GET', path: '/api/test', status: 200 },
  {
    name: 'a simple POST of a form',
    path: '/api/test',
    init: { method: 'POST', body: 'a=1', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } },
    status: 200,
  },
  {
    name: 'a simple POST of text',
    path: '/api/test',
    init: { method: 'POST', body: 'a', headers: { 'Content-Type': 'text/plain' } },
    status: 200,
  },
  { name: 'HEAD', path: '/api/test', init: { method: 'HEAD' }, status: 200 },
  {
    name: 'a preflighted POST of JSON',
    path: '/api/test',
    init: { method: 'POST', body: '{}', headers: JSON_TYPE },
    status: 200,
  },
  {
    name: 'a preflighted PUT',
    path: '/api/test',
    init: { method: 'PUT', body: '{}', headers: JSON_TYPE },
    status: 200,
  },
  { name: 'a preflighted PATCH', path: '/api/test/updated', init: { method: 'PATCH' }, status: 200 },
  { name: 'a preflighted DELETE', path: '/api/test', init: { method: 'DELETE' }, status: 200 },
  {
    name: 'a GET with custom headers',
    path: '/api/test',
    init: { headers: { 'X-Request-Id': 'page-1', 'X-Anything': '1' } },
    status: 200,
  },
  {
    name: 'a GET with Authorization',
    path: '/api/test',
    init: { headers: { Authorization: 'Bearer foreign' } },
    status: 200,
  },
  { name: 'a 400', path: '/api/test', init: { method: 'POST', body: '{', headers: JSON_TYPE }, status: 400 },
  { name: 'a 401', path: '/api/test', init: { headers: { Authorization: 'Bearer gfk_revoked' } }, status: 401 },
  { name: 'a 404', path: '/api/absent', status: 404 },
  {
    name: 'a 413',
    path: '/api/test',
    init: { method: 'POST', body: `"${'a'.repeat(2000)}"`, headers: JSON_TYPE },
    status: 413,
  },
  { name: 'a 500', path: '/api/test', init: { method: 'PATCH' }, status: 500 },
];

describe('a page of another origin can read', { skip: noChromium }, () => {
  let browser: Browser;
  let page: Page;
  let origin: Server;
  let service: Service;
  let data: string;
  let credentials: Credentials;

  before(async () => {
    data = mkdtempSync(join(tmpdir(), 'gatefold-cors-'));
    const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
    credentials = await createCredentials({ dataDir: data, sessionKey: undefined, log });
    service = await startService({
      parts: { credentials },
      settings: { BODY_LIMIT: '1000' },
      expectedErrors: ['request-failed'],
    });
    origin = createServer((_request, response) =>
      response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>page</title>'),
    );
    await new Promise<void>((listening) => origin.listen(0, '127.0.0.1', listening));
    browser = await launchChromium();
    page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(origin.address() as AddressInfo).port}/`);
  });
  after(async () => {
    await browser?.close();
    origin?.closeAllConnections();
    origin?.close();
    credentials?.close();
    await service?.close();
    rmSync(data, { recursive: true, force: true });
  });

  for (const { name, path, init = {}, status } of ROWS) {
    test(name, async () => {
      const answer = await page.evaluate(
        async ([url, options]) => {
          const response = await fetch(url, options);
          return {
            status: response.status,
            requestId: response.headers.get('x-request-id'),
            text: await response.text(),
          };
        },
        [service.url + path, init] as const,
      );
      assert.equal(answer.status, status);
      assert.ok(answer.requestId, 'the page cannot read X-Request-Id');
      if (status >= 400) assert.equal((JSON.parse(answer.text) as { status: string }).status, 'error');
    });
  }
});
