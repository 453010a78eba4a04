// The typed client in a browser: the page and the service have different origins.
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { buildSync } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import type * as GatefoldClient from '../../src/api/client.ts';
import type { EventStream, Reply } from '../../src/api/controller.ts';
import { launchChromium, noChromium, openPage } from '../support/chromium.ts';
import { moduleUrl } from '../support/own-modules.ts';
import { type Service, startService } from '../support/service.ts';

const CONTROLLER = `
import { eventStream, HttpError, Reply } from ${JSON.stringify(moduleUrl('src/api/controller'))};
export default class BookController {
  index(query) { return { query }; }
  created(data, params) {
    const cover = data.cover instanceof File ? { name: data.cover.name, size: data.cover.size } : undefined;
    return { title: data.title, cover, authorization: params.request.headers.authorization };
  }
  red(data) { return new Reply(201, data, { ETag: '"1"' }); }
  async *#two() { yield { event: 'first', id: '1', data: { n: 1 } }; yield 2; }
  patch() { return new Reply(204); }
  'GET events'() { return eventStream(this.#two()); }
  'GET cover'() { return new Blob(['PNG'], { type: 'image/png' }); }
  'GET moved'() { return Reply.redirect('/api/book?title=moved'); }
  deleted() { throw new HttpError(409, 'BOOK_LENT', 'The book is lent'); }
  slow(_, { signal }) { return new Promise((done) => signal.addEventListener('abort', () => done())); }
}`;

/** The client as a page has it: the bundle of client.ts under a global name. */
declare const gatefold: typeof GatefoldClient;
declare class BookController {
  index(query: { title?: string; year?: number }): { query: unknown };
  created(data: { title: string; cover?: File }): {
    title: string;
    cover?: { name: string; size: number };
    authorization?: string;
  };
  deleted(): void;
  red(data: { n: number }): Reply<201, { n: number }>;
  patch(): Reply<204>;
  'GET events'(): EventStream<{ n: number } | number>;
  'GET cover'(): Blob;
  'GET moved'(): { query: unknown };
  slow(): void;
}

describe('the client in a page of another origin', { skip: noChromium }, () => {
  let browser: Browser;
  let page: Page;
  let origin: Server;
  let service: Service;

  before(async () => {
    service = await startService({ controllers: { 'BookController.mjs': CONTROLLER } });
    origin = createServer((_request, response) =>
      response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>page</title>'),
    );
    await new Promise<void>((listening) => origin.listen(0, '127.0.0.1', listening));
    browser = await launchChromium();
    page = await openPage(browser);
    await page.goto(`http://127.0.0.1:${(origin.address() as AddressInfo).port}/`);
    const { outputFiles } = buildSync({
      entryPoints: ['src/api/client.ts'],
      bundle: true,
      format: 'iife',
      globalName: 'gatefold',
      write: false,
    });
    await page.addScriptTag({ content: outputFiles[0]?.text ?? '' });
  });
  after(async () => {
    await browser?.close();
    origin?.closeAllConnections();
    origin?.close();
    await service?.close();
  });

  test('sends a query, a body, a file and a credential', async () => {
    const got = await page.evaluate(async (url) => {
      const api = gatefold.createClient<{ book: typeof BookController }>(url, { authorization: 'Bearer foreign' });
      const { query } = await api.book.index({ title: 'Tea & more', year: 1900 });
      const { title, authorization } = await api.book.created({ title: 'Tea' });
      const { cover } = await api.book.created({
        title: 'Tea',
        cover: new File(['PNG'], 'cover.png', { type: 'image/png' }),
      });
      return { query, title, authorization, cover };
    }, service.url);
    assert.deepEqual(got, {
      query: { title: 'Tea & more', year: '1900' },
      title: 'Tea',
      authorization: 'Bearer foreign',
      cover: { name: 'cover.png', size: 3 },
    });
  });

  test('returns bodies, headers, undefined for 204, bytes and every event', async () => {
    const got = await page.evaluate(async (url) => {
      const api = gatefold.createClient<{ book: typeof BookController }>(url);
      const call = api.book.red({ n: 1 });
      const events: unknown[] = [];
      for await (const event of await api.book['GET events']()) events.push(event);
      const etag = (await call.response).headers.get('etag');
      return [await call, etag, await api.book.patch(), await (await api.book['GET cover']()).text(), events];
    }, service.url);
    const events = [
      { event: 'first', id: '1', data: { n: 1 } },
      { event: 'message', id: '1', data: 2 },
    ];
    assert.deepEqual(got, [{ n: 1 }, '"1"', undefined, 'PNG', events]);
  });

  test('throws an error with its code and request id', async () => {
    const got = await page.evaluate(async (url) => {
      const api = gatefold.createClient<{ book: typeof BookController }>(url);
      const error = await api.book.deleted().catch((thrown: GatefoldClient.ApiError) => thrown);
      if (!(error instanceof gatefold.ApiError)) throw new Error('it was not refused');
      return {
        status: error.status,
        code: error.code,
        id: error.requestId,
        header: error.response?.headers.get('x-request-id'),
      };
    }, service.url);
    assert.deepEqual([got.status, got.code], [409, 'BOOK_LENT']);
    assert.ok(got.id !== undefined && got.id === got.header);
  });

  test('follows a redirect, but not with headers, because the browser hides where it leads', async () => {
    const got = await page.evaluate(async (url) => {
      const headersOf = (headers?: Record<string, string>) =>
        gatefold.createClient<{ book: typeof BookController }>(url, headers === undefined ? {} : { headers });
      const refused = await headersOf({ 'X-Api-Key': 'secret' })
        .book['GET moved']()
        .catch(({ status, code }: GatefoldClient.ApiError) => [status, code]);
      return [await headersOf().book['GET moved'](), refused];
    }, service.url);
    assert.deepEqual(got, [{ query: { title: 'moved' } }, [0, 'REDIRECT_REFUSED']]);
  });

  test('rejects an aborted call, a timed-out call, and a call to a missing service', async () => {
    const got = await page.evaluate(async (url) => {
      const api = gatefold.createClient<{ book: typeof BookController }>(url);
      const abort = new AbortController();
      const calls = [
        api.book.slow(undefined, { signal: abort.signal }),
        api.book.slow(undefined, { timeout: 50 }),
        gatefold.createClient<{ book: typeof BookController }>('http://127.0.0.1:1').book.index(),
      ];
      abort.abort();
      const settled = await Promise.allSettled<unknown>(calls);
      return settled.map(
        (one) =>
          one.status === 'rejected' && (one.reason instanceof gatefold.ApiError ? one.reason.code : one.reason.name),
      );
    }, service.url);
    assert.deepEqual(got, ['AbortError', 'TIMEOUT', 'NETWORK_ERROR']);
  });
});
