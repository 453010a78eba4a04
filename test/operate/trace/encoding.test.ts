// Values that controllers without types can pass to spans, and the texts that spans are written with.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { channel } from 'node:diagnostics_channel';
import { it } from 'node:test';
import { traceClients } from '../../../src/operate/trace/client-spans.ts';
import type { EndedSpan } from '../../../src/operate/trace/exporter.ts';
import {
  copyAttributes,
  encodeAttributes,
  formatNanoseconds,
  type Kind,
  updateClockOffset,
} from '../../../src/operate/trace/otlp.ts';
import { beginSpan, errorType, type Span } from '../../../src/operate/trace/span.ts';

const tracer = { storage: new AsyncLocalStorage<undefined>(), add: () => {} };

for (const kind of ['toString', 'constructor', '__proto__', 'none', undefined, null, 7])
  it(`writes a span of the unknown kind ${kind} as internal`, () => {
    const span = beginSpan(tracer, () => true, undefined, '');
    span.end('name', kind as Kind, {});
    assert.equal((JSON.parse(span.encode()) as { kind: number }).kind, 1);
  });

const values: readonly (readonly [value: unknown, encoded: object])[] = [
  [Number.POSITIVE_INFINITY, { doubleValue: 'Infinity' }],
  [Number.NaN, { doubleValue: 'NaN' }],
  [2 ** 60, { doubleValue: 2 ** 60 }],
  [Object.create(null), { stringValue: 'a value that cannot be converted to text' }],
  ['x'.repeat(5000), { stringValue: 'x'.repeat(4096) }],
  // A list with a gap.
  [
    Object.assign(new Array(2), { 1: 'x' }),
    { arrayValue: { values: [{ stringValue: 'undefined' }, { stringValue: 'x' }] } },
  ],
];
for (const [value, encoded] of values)
  it(`writes an attribute as ${JSON.stringify(encoded).slice(0, 50)}`, () => {
    const attribute = encodeAttributes(copyAttributes({ name: value as string }));
    assert.deepEqual(JSON.parse(attribute), { key: 'name', value: encoded });
  });

it('leaves out an attribute whose value is undefined or null', () => {
  assert.deepEqual(copyAttributes({ a: undefined, b: null as never, c: 0, d: false }), { c: 0, d: false });
});

for (const attributes of [
  null,
  {
    ok: true,
    get lazy() {
      throw new Error('not loaded');
    },
  },
])
  it(`runs the work of a span whose attributes are ${attributes === null ? 'null' : 'unreadable'}`, () => {
    const span = beginSpan(tracer, () => true, undefined, '');
    assert.equal(
      span.span('name', () => 7, { attributes: attributes as never }),
      7,
    );
  });

it('estimates the size of a span, also of one with lists', () => {
  const span = beginSpan(tracer, () => true, undefined, '');
  span.end('n'.repeat(500), 'server', {
    text: 'x'.repeat(4000),
    list: ['y'.repeat(3000), 'z'.repeat(3000)],
    number: 7,
  });
  const { length } = span.encode();
  assert.ok(Math.abs(span.size - length) < 300, `${span.size} and ${length}`);
});

const unreadable = new Proxy({}, { get: () => assert.fail('this field cannot be read') });
const errors: readonly (readonly [title: string, error: unknown, type: string])[] = [
  ['an error with a code', { code: 'E_CODE', name: 'Name' }, 'E_CODE'],
  ['an error with a name', new RangeError('x'), 'RangeError'],
  ['an error with a space in its code', { code: 'a b', name: 'Name' }, 'Name'],
  ['null', null, '_OTHER'],
  ['undefined', undefined, '_OTHER'],
  ['an error whose fields throw', unreadable, '_OTHER'],
];
for (const [title, error, type] of errors)
  it(`returns ${type} as the error type of ${title}`, () => assert.equal(errorType(error), type));

it('corrects the times of spans after the clock of the machine was set', (test) => {
  test.after(updateClockOffset);
  const moment = performance.now();
  test.mock.method(Date, 'now', () => 2 ** 41);
  updateClockOffset();
  const difference = Number(BigInt(formatNanoseconds(moment)) / 1_000_000n) - 2 ** 41;
  assert.ok(Math.abs(difference) < 60_000, String(difference));
});

it('traceClients describes a request of fetch by its origin, its method and the status of its answer', (test) => {
  const storage = new AsyncLocalStorage<Span | undefined>();
  const spans: { readonly name: string; readonly hasFailed: boolean; readonly attributes: object }[] = [];
  const add = (span: EndedSpan) => void spans.push(span as Span);
  const parent = beginSpan({ storage, add }, () => true, undefined, '');
  test.after(traceClients({ tracer: { storage, add }, allowsHost: () => false }));
  const rows: readonly (readonly [origin: string, method: string, status: number, port: number, hasFailed: boolean])[] =
    [
      ['https://api.example', 'GET', 399, 443, false],
      ['http://api.example', 'PURGE', 400, 80, true],
      ['https://api.example:8443', 'POST', 200, 8443, false],
    ];
  for (const [origin, method, status, port, hasFailed] of rows) {
    const request = { origin, method, path: '/a?secret=1', headers: [], addHeader: () => assert.fail('not allowed') };
    storage.run(parent, () => channel('undici:request:create').publish({ request }));
    channel('undici:request:headers').publish({ request, response: { statusCode: status } });
    const isKnown = method !== 'PURGE';
    const span = spans.pop();
    assert.deepEqual([span?.name, span?.hasFailed], [isKnown ? method : 'HTTP', hasFailed]);
    assert.deepEqual(span?.attributes, {
      'http.request.method': isKnown ? method : '_OTHER',
      'http.request.method_original': isKnown ? undefined : method,
      'server.address': 'api.example',
      'server.port': port,
      'url.full': `${origin}/a`,
      'network.protocol.version': undefined,
      'http.response.status_code': status,
      ...(hasFailed && { 'error.type': '400' }),
    });
  }
});
