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

type Init = { readonly method?: string; readonly body?: string; readonly headers?: Record<string, string> };

const sent = (method: string, type: string, body: string): Init => ({
  method,
  body,
  headers: { 'Content-Type': type },
});
const JSON_TYPE = 'application/json';
const ROWS: readonly (readonly [name: string, status: number, path: string, init?: Init])[] = [
  ['a simple GET', 200, '/api/test'],
  ['a simple POST of a form', 200, '/api/test', sent('POST', 'application/x-www-form-urlencoded', 'a=1')],
  ['a simple POST of text', 200, '/api/test', sent('POST', 'text/plain', 'a')],
  ['HEAD', 200, '/api/test', { method: 'HEAD' }],
  ['a preflighted POST of JSON', 200, '/api/test', sent('POST', JSON_TYPE, '{}')],
  ['a preflighted PUT', 200, '/api/test', sent('PUT', JSON_TYPE, '{}')],
  ['a preflighted PATCH', 200, '/api/test/updated', { method: 'PATCH' }],
  ['a preflighted DELETE', 200, '/api/test', { method: 'DELETE' }],
  ['a GET with custom headers', 200, '/api/test', { headers: { 'X-Request-Id': 'page-1', 'X-Anything': '1' } }],
  ['a GET with Authorization', 200, '/api/test', { headers: { Authorization: 'Bearer foreign' } }],
  ['a 400', 400, '/api/test', sent('POST', JSON_TYPE, '{')],
  ['a 401', 401, '/api/test', { headers: { Authorization: 'Bearer gfk_revoked' } }],
  ['a 404', 404, '/api/absent'],
  ['a 413', 413, '/api/test', sent('POST', JSON_TYPE, `"${'a'.repeat(2000)}"`)],
  ['a 500', 500, '/api/test', { method: 'PATCH' }],
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

  for (const [name, status, path, init = {}] of ROWS) {
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
