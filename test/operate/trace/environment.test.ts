// The environment variables of OpenTelemetry's specification.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readTraceSettings, type TraceSettings } from '../../../src/operate/trace/environment.ts';
import { type CreateSampler, SAMPLERS } from '../../../src/operate/trace/sampler.ts';
import { newSpanId, newTraceId } from '../../../src/operate/trace/span.ts';
import { announceTracing } from '../../../src/operate/trace/tracing.ts';
import { createMemoryLog } from '../../support/memory-log.ts';

const BASE = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

function settingsOf(env: Record<string, string>): TraceSettings & { ignored: readonly string[] } {
  const reading = readTraceSettings({ ...BASE, ...env });
  assert.equal(reading.kind, 'on', JSON.stringify(reading));
  return { ...reading.settings, ignored: reading.ignored.map(({ variable }) => variable) };
}

it('the start logs where traces go, or why there are none, and each variable that is ignored', () => {
  const rows: readonly (readonly [env: Record<string, string>, lines: readonly object[]])[] = [
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://me:secret@collector:4318', OTEL_BSP_SCHEDULE_DELAY: '0' },
      [
        {
          event: 'trace-variable-ignored',
          variable: 'OTEL_BSP_SCHEDULE_DELAY',
          reason: 'it is not a whole number from 1 to 2147483647; 5000 holds',
        },
        { event: 'traces-on', endpoint: 'http://collector:4318/v1/traces', sampler: 'parentbased_always_on' },
      ],
    ],
    [{ ...BASE, OTEL_SDK_DISABLED: 'true' }, [{ event: 'traces-disabled', reason: 'OTEL_SDK_DISABLED is true' }]],
  ];
  for (const [env, expected] of rows) {
    const { log, lines } = createMemoryLog();
    announceTracing(env, log);
    assert.deepEqual(lines, expected);
  }
});

describe('readTraceSettings', () => {
  const endpoints: readonly (readonly [env: Record<string, string>, url: string])[] = [
    [{}, 'http://collector:4318/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c.test/otlp/' }, 'https://c.test/otlp/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c.test:4318/my/path' }, 'http://c.test:4318/my/path'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c.test:4318' }, 'http://c.test:4318/'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c.test/x' }, 'http://c.test/x'],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c.test:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' },
      'http://c.test:4317/v1/traces',
    ],
    [
      { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' },
      'http://collector:4318/v1/traces',
    ],
  ];
  for (const [env, url] of endpoints)
    it(`${JSON.stringify(env)} sends to ${url}`, () => assert.equal(settingsOf(env).endpoint.href, url));

  const off: readonly (readonly [env: Record<string, string>, reason: RegExp, isDeliberate: boolean])[] = [
    [{ OTEL_SDK_DISABLED: 'true' }, /^OTEL_SDK_DISABLED is true$/, true],
    [{ OTEL_SDK_DISABLED: 'TRUE' }, /OTEL_SDK_DISABLED/, true],
    [{ OTEL_TRACES_EXPORTER: 'none' }, /OTEL_TRACES_EXPORTER/, true],
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /OTEL_TRACES_EXPORTER is not otlp/, false],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /OTEL_EXPORTER_OTLP_PROTOCOL is not http\/json/, false],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }, /not http\/json/, false],
    [{ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' }, /OTEL_EXPORTER_OTLP_TRACES_PROTOCOL/, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c.test:4317' }, /port 4317.*use 4318/, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /not a URL/, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'grpc://c.test' }, /not a URL/, false],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'no-value' }, /OTEL_EXPORTER_OTLP_HEADERS is not a list/, false],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'key=%zz' }, /not a list/, false],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a b=1' }, /not a list/, false],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=1%0d%0aB: 2' }, /not a list/, false],
    [{ OTEL_EXPORTER_OTLP_TRACES_HEADERS: '=secret' }, /TRACES_HEADERS/, false],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=1,Content-Length=7' }, /has the header content-length/, false],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'transfer-encoding=chunked' }, /has the header transfer-encoding/, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:%zz@c.test' }, /has a user name or a password/, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user%:20@c.test' }, /has a user name or a password/, false],
    [
      { OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: '/nowhere.pem' },
      /TRACES_CLIENT_KEY names a file that cannot be read: it does not exist/,
      false,
    ],
  ];
  for (const [env, reason, isDeliberate] of off)
    it(`turns tracing off with ${JSON.stringify(env)}`, () => {
      const reading = readTraceSettings({ ...BASE, ...env });
      assert.equal(reading.kind, 'off');
      assert.match(reading.reason, reason);
      assert.equal(reading.isDeliberate, isDeliberate);
      assert.doesNotMatch(reading.reason, /secret=|%zz|no-value/);
    });

  it('turns tracing off when another tracer is registered, but not when only a logger is registered', () => {
    const key = Symbol.for('opentelemetry.js.api.1');
    const globals = globalThis as Record<symbol, unknown>;
    try {
      globals[key] = { version: '1.9.0', diag: {} };
      assert.equal(readTraceSettings(BASE).kind, 'on');
      globals[key] = { version: '1.9.0', trace: {} };
      const reading = readTraceSettings(BASE);
      assert.equal(reading.kind, 'off');
      assert.match(reading.reason, /another tracer/);
    } finally {
      delete globals[key];
    }
  });

  it('uses the defaults of the specification', () => {
    const { timeout, delay, samplerName, headers, compress, ignored } = settingsOf({});
    assert.deepEqual(
      { timeout, delay, samplerName, headers, compress, ignored },
      {
        ...{ timeout: 10_000, delay: 5000, samplerName: 'parentbased_always_on' },
        ...{ headers: {}, compress: false, ignored: [] },
      },
    );
  });

  it('reads headers as a list with percent-encoded values', () => {
    const text = 'Api-Key = s%20e%2Cc=ret , x-tenant=7';
    assert.deepEqual(settingsOf({ OTEL_EXPORTER_OTLP_HEADERS: text }).headers, {
      'api-key': 's e,c=ret',
      'x-tenant': '7',
    });
    const both = { OTEL_EXPORTER_OTLP_HEADERS: 'a=1', OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'b=2' };
    assert.deepEqual(settingsOf(both).headers, { b: '2' });
  });

  it('OTEL_SERVICE_NAME wins over service.name of the resource', () => {
    const env = { OTEL_RESOURCE_ATTRIBUTES: 'service.name=a,team=x%2Fy' };
    assert.deepEqual(
      [...settingsOf(env).resource],
      [
        ['service.name', 'a'],
        ['team', 'x/y'],
      ],
    );
    assert.equal(settingsOf({ ...env, OTEL_SERVICE_NAME: 'b' }).resource.get('service.name'), 'b');
  });

  const ignored: readonly (readonly [variable: string, text: string, key: keyof TraceSettings, value: unknown])[] = [
    ['OTEL_TRACES_SAMPLER', 'sometimes', 'samplerName', 'parentbased_always_on'],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote', 'samplerName', 'parentbased_always_on'],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '10s', 'timeout', 10_000],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '-1', 'timeout', 10_000],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '0', 'timeout', 10_000],
    ['OTEL_EXPORTER_OTLP_COMPRESSION', 'zstd', 'compress', false],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '4096', 'delay', 5000],
    ['OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS', 'PURGE', 'delay', 5000],
    ['OTEL_BSP_SCHEDULE_DELAY', 'soon', 'delay', 5000],
    ['OTEL_SDK_DISABLED', 'yes', 'samplerName', 'parentbased_always_on'],
  ];
  for (const [variable, text, key, value] of ignored)
    it(`ignores ${variable}=${text}, and reports the variable`, () => {
      const settings = settingsOf({ [variable]: text });
      assert.deepEqual(settings.ignored, [variable]);
      assert.equal(settings[key], value);
    });

  it('says what is wrong with each value that it ignores', () => {
    const samplers = [...SAMPLERS.keys()].join(', ');
    const reasons: Readonly<Record<string, readonly [text: string, reason: string]>> = {
      OTEL_EXPORTER_OTLP_COMPRESSION: ['zstd', 'it is neither gzip nor none'],
      OTEL_BSP_MAX_QUEUE_SIZE: ['4096', 'this service does not read it'],
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: ['4096', 'this service does not read it'],
      OTEL_EXPORTER_OTLP_TIMEOUT: ['2147483648', 'it is not a whole number from 1 to 2147483647; 10000 holds'],
      OTEL_TRACES_SAMPLER: ['some', `it is none of ${samplers}; parentbased_always_on holds`],
      OTEL_RESOURCE_ATTRIBUTES: ['a', 'it is not a list such as key=value,key=value'],
      OTEL_BSP_SCHEDULE_DELAY: ['0', 'it is not a whole number from 1 to 2147483647; 5000 holds'],
    };
    const read = (env: Record<string, string>) => {
      const reading = readTraceSettings({ ...BASE, ...env });
      assert.ok(reading.kind === 'on');
      return Object.fromEntries(reading.ignored.map(({ variable, reason }) => [variable, reason]));
    };
    const texts = Object.entries(reasons).map(([variable, [text]]) => [variable, text]);
    const expected = Object.entries(reasons).map(([variable, [, reason]]) => [variable, reason]);
    assert.deepEqual(read(Object.fromEntries(texts)), Object.fromEntries(expected));
    assert.deepEqual(read({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '1.5' }), {
      OTEL_TRACES_SAMPLER_ARG: 'it is not a number from 0 to 1; 1 holds, so every trace is recorded',
    });
    const longest = { OTEL_EXPORTER_OTLP_TIMEOUT: '2147483647', OTEL_BSP_SCHEDULE_DELAY: '1' };
    assert.deepEqual([settingsOf(longest).timeout, settingsOf(longest).delay], [2_147_483_647, 1]);
    for (const [ratio, isSampled] of [
      ['0', false],
      ['1', true],
    ] as const) {
      const env = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: ratio };
      const { sampler, ignored } = settingsOf(env);
      assert.deepEqual(ignored, []);
      assert.equal(sampler('0'.repeat(32), undefined), isSampled);
    }
  });

  it('drops all resource attributes when one attribute is malformed', () => {
    const settings = settingsOf({ OTEL_RESOURCE_ATTRIBUTES: 'a=1,b=%zz' });
    assert.deepEqual([...settings.resource], []);
    assert.deepEqual(settings.ignored, ['OTEL_RESOURCE_ATTRIBUTES']);
  });

  for (const text of ['', '2', '-0.1', 'half', '0,5', 'NaN'])
    it(`ignores OTEL_TRACES_SAMPLER_ARG=${text}, and uses the ratio 1`, () => {
      const settings = settingsOf({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: text });
      assert.deepEqual(settings.ignored, ['OTEL_TRACES_SAMPLER_ARG']);
      assert.equal(settings.sampler('0'.repeat(32), undefined), true);
    });

  it('accepts the name of a sampler in upper and lower case', () => {
    const env = { OTEL_TRACES_SAMPLER: 'Parentbased_TraceIdRatio', OTEL_TRACES_SAMPLER_ARG: '.25' };
    const settings = settingsOf(env);
    assert.equal(settings.samplerName, 'parentbased_traceidratio');
    assert.deepEqual(settings.ignored, []);
  });
});

describe('SAMPLERS', () => {
  const createSampler = (name: string, ratio: number) => (SAMPLERS.get(name) as CreateSampler)(ratio);
  const LOW = `${'f'.repeat(19)}${'0'.repeat(13)}`;
  const HIGH = `${'0'.repeat(19)}${'f'.repeat(13)}`;
  const parent = (flags: number) => ({ traceId: 'a'.repeat(32), spanId: '1'.repeat(16), flags });
  const rows: readonly (readonly [
    name: string,
    ratio: number,
    root: [low: boolean, high: boolean],
    sampled: boolean,
    not: boolean,
  ])[] = [
    ['always_on', 0, [true, true], true, true],
    ['always_off', 1, [false, false], false, false],
    ['traceidratio', 0.5, [false, true], false, false],
    ['parentbased_always_on', 0, [true, true], true, false],
    ['parentbased_always_off', 1, [false, false], true, false],
    ['parentbased_traceidratio', 0.5, [false, true], true, false],
  ];
  for (const [name, ratio, [low, high], sampled, notSampled] of rows)
    it(`${name} decides by the trace id or by the parent`, () => {
      const sampler = createSampler(name, ratio);
      assert.equal(sampler(LOW, undefined), low);
      assert.equal(sampler(HIGH, undefined), high);
      assert.equal(sampler(LOW, parent(1)), sampled);
      assert.equal(sampler(LOW, parent(0)), notSampled);
    });

  it('has a test row for each name of a sampler', () =>
    assert.deepEqual(
      [...SAMPLERS.keys()],
      rows.map(([name]) => name),
    ));

  it('samples the configured ratio of trace ids', () => {
    const digits = (i: number) => Math.floor(((i + 0.5) / 1000) * 2 ** 52).toString(16);
    const ids = Array.from({ length: 1000 }, (_, i) => 'f'.repeat(19) + digits(i).padStart(13, '0'));
    for (const ratio of [0, 0.25, 1]) {
      const sampler = createSampler('traceidratio', ratio);
      assert.equal(ids.filter((id) => sampler(id, undefined)).length, ratio * 1000);
    }
  });
});

it('ids are hexadecimal, and none is made twice', () => {
  const ids = Array.from({ length: 1000 }, () => newTraceId() + newSpanId());
  for (const id of ids) assert.match(id, /^[0-9a-f]{48}$/);
  assert.equal(new Set(ids).size, 1000);
});
