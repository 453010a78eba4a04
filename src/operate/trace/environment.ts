// Reads the variables that configure OpenTelemetry, under the names of its specification. Other programs read the same
// variables, so a value that this service cannot use can be right for them. The service therefore starts anyway:
// tracing is off or a default value is used, and a log line says so.
import { readFileSync } from 'node:fs';
import { attempt, describeFailure } from '../../base/failure.ts';
import { isToken } from '../../base/values.ts';
import { type CreateSampler, DEFAULT_SAMPLER, SAMPLERS } from './sampler.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export type TraceSettings = Extract<ReturnType<typeof readTraceSettings>, { kind: 'on' }>['settings'];

/** Variables of the specification that would change what is traced or lost, and that this service does not read. */
const UNREAD_VARIABLES = [
  'OTEL_BSP_MAX_QUEUE_SIZE',
  'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
  'OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS',
];

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Headers that control how a request is sent. The service alone decides this, so a variable may not set them. */
const CONNECTION_HEADERS = ['connection', 'content-length', 'expect', 'te', 'trailer', 'transfer-encoding', 'upgrade'];

export function readTraceSettings(env: Environment) {
  const ignored: { readonly variable: string; readonly reason: string }[] = [];
  const readVariable = (name: string): string => (env[name] ?? '').trim();
  /** Returns the name of the variable for traces if it is set, and else of the variable for all kinds of telemetry. */
  const variableFor = (suffix: string): string =>
    readVariable(`OTEL_EXPORTER_OTLP_TRACES_${suffix}`) === ''
      ? `OTEL_EXPORTER_OTLP_${suffix}`
      : `OTEL_EXPORTER_OTLP_TRACES_${suffix}`;
  const readExporterVariable = (suffix: string): string => readVariable(variableFor(suffix));
  const ignore = (variable: string, reason: string): void => void ignored.push({ variable, reason });

  function readMilliseconds(name: string, fallback: number): number {
    const text = readVariable(name);
    const value = /^\d+$/.test(text) ? Number(text) : 0;
    if (value >= 1 && value <= LONGEST_TIMER_MS) return value;
    if (text !== '') ignore(name, `it is not a whole number from 1 to ${LONGEST_TIMER_MS}; ${fallback} holds`);
    return fallback;
  }

  /** @throws Error when the variable names a file that cannot be read */
  function readPem(suffix: string): Buffer | undefined {
    const path = readExporterVariable(suffix);
    if (path === '') return undefined;
    try {
      return readFileSync(path);
    } catch (error) {
      throw new Error(`${variableFor(suffix)} names a file that cannot be read: ${describeFailure(error)}`);
    }
  }

  function readSampler() {
    const requestedName = readVariable('OTEL_TRACES_SAMPLER').toLowerCase() || DEFAULT_SAMPLER;
    const samplerName = SAMPLERS.has(requestedName) ? requestedName : DEFAULT_SAMPLER;
    if (samplerName !== requestedName)
      ignore('OTEL_TRACES_SAMPLER', `it is none of ${[...SAMPLERS.keys()].join(', ')}; ${DEFAULT_SAMPLER} holds`);
    const createSampler = SAMPLERS.get(samplerName) as CreateSampler;
    return { samplerName, sampler: createSampler(readRatio(samplerName)) };
  }

  /** Reads the part of traces to record. @returns 1 when the variable has no valid value */
  function readRatio(samplerName: string): number {
    const text = readVariable('OTEL_TRACES_SAMPLER_ARG');
    const ratio = /^(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
    if (ratio <= 1) return ratio;
    if (samplerName.endsWith('traceidratio'))
      ignore('OTEL_TRACES_SAMPLER_ARG', 'it is not a number from 0 to 1; 1 holds, so every trace is recorded');
    return 1;
  }

  /** Reads the attributes of this service. `service.name` is one of them when a variable sets it. */
  function readResource(): ReadonlyMap<string, string> {
    const resource = readPairs(readVariable('OTEL_RESOURCE_ATTRIBUTES'));
    // The specification drops all attributes if one of them is malformed.
    if (resource === undefined) ignore('OTEL_RESOURCE_ATTRIBUTES', 'it is not a list such as key=value,key=value');
    const name = readVariable('OTEL_SERVICE_NAME');
    return new Map([...(resource ?? []), ...(name === '' ? [] : ([['service.name', name]] as const))]);
  }

  try {
    const disabled = readVariable('OTEL_SDK_DISABLED').toLowerCase();
    if (disabled === 'true') return off('OTEL_SDK_DISABLED is true', true);
    if (!['', 'false'].includes(disabled)) ignore('OTEL_SDK_DISABLED', 'it is neither true nor false; false holds');
    const exporters = readVariable('OTEL_TRACES_EXPORTER');
    if (exporters === 'none') return off('OTEL_TRACES_EXPORTER is none', true);
    if (exporters !== '' && !listOf(exporters).includes('otlp')) return off('OTEL_TRACES_EXPORTER is not otlp');
    const protocol = readExporterVariable('PROTOCOL');
    if (protocol !== '' && protocol !== 'http/json')
      return off(`${variableFor('PROTOCOL')} is not http/json, the only protocol here`);
    const endpoint = readEndpoint(variableFor('ENDPOINT'), readExporterVariable('ENDPOINT'));
    if (endpoint.port === '4317' && protocol === '')
      return off(
        `${variableFor('ENDPOINT')} has the port 4317, which is for gRPC: use 4318, or set ${variableFor('PROTOCOL')} to http/json`,
      );
    const compression = readExporterVariable('COMPRESSION').toLowerCase();
    if (!['', 'none', 'gzip'].includes(compression)) ignore(variableFor('COMPRESSION'), 'it is neither gzip nor none');
    for (const name of UNREAD_VARIABLES) if (readVariable(name) !== '') ignore(name, 'this service does not read it');
    const settings = {
      endpoint,
      headers: readHeaders(variableFor('HEADERS'), readExporterVariable('HEADERS')),
      /** The time limit for the export of a batch in milliseconds, including retries. */
      timeout: readMilliseconds(variableFor('TIMEOUT'), 10_000),
      /** PEM texts: the authority of the collector's certificate, and this service's own certificate and key. */
      tls: { ca: readPem('CERTIFICATE'), cert: readPem('CLIENT_CERTIFICATE'), key: readPem('CLIENT_KEY') },
      compress: compression === 'gzip',
      ...readSampler(),
      resource: readResource(),
      /** Milliseconds that a span waits at most for its batch to fill. */
      delay: readMilliseconds('OTEL_BSP_SCHEDULE_DELAY', 5000),
    };
    if (hasOtherTracer()) return off('another tracer of OpenTelemetry is registered in this process');
    return { kind: 'on', settings, ignored } as const;
  } catch (error) {
    return off((error as Error).message);
  }
}

/** @param isDeliberate true when a variable turns tracing off, and false for any other reason, such as a mistake */
function off(reason: string, isDeliberate = false) {
  return { kind: 'off', reason, isDeliberate } as const;
}

function listOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** @throws Error when no traces can be sent to this address */
function readEndpoint(name: string, text: string): URL {
  const endpoint = URL.canParse(text) ? new URL(text) : undefined;
  if (endpoint === undefined || !/^https?:$/.test(endpoint.protocol))
    throw new Error(`${name} is not a URL that begins with http:// or https://`);
  if (/%(?![\da-f]{2})/i.test(`${endpoint.username}:${endpoint.password}`))
    throw new Error(`${name} has a user name or a password with a % that begins no code such as %20`);
  // An address for all kinds of telemetry still needs the path for traces. An address for traces is used as it is.
  if (!name.includes('TRACES')) endpoint.pathname = `${endpoint.pathname.replace(/\/$/, '')}/v1/traces`;
  return endpoint;
}

/** @throws Error whose message has no value of a header, because the values are often secret */
function readHeaders(name: string, text: string): Readonly<Record<string, string>> {
  const pairs = readPairs(text);
  const isHeader = ([key, value]: readonly [string, string]): boolean =>
    isToken(key) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
  if (pairs === undefined || ![...pairs].every(isHeader))
    throw new Error(`${name} is not a list of headers such as api-key=secret,x-tenant=7, with other characters as %20`);
  const headers = Object.fromEntries([...pairs].map(([key, value]) => [key.toLowerCase(), value]));
  const reservedHeader = CONNECTION_HEADERS.find((header) => header in headers);
  if (reservedHeader !== undefined)
    throw new Error(`${name} has the header ${reservedHeader}, which the service sets itself for each request`);
  return headers;
}

/** Reads `key=value,key=value` with percent-encoded keys and values. @returns undefined for a malformed text */
function readPairs(text: string): Map<string, string> | undefined {
  const readPair = (pair: string): [string, string] => {
    const [, key = '', value = ''] = /^([^=\s]+)\s*=\s*(.*)$/s.exec(pair) ?? [];
    if (key === '') throw new URIError();
    return [decodeURIComponent(key), decodeURIComponent(value)];
  };
  return attempt(() => new Map(listOf(text).map(readPair)), undefined);
}

/** All copies of OpenTelemetry's API register their tracer in this global variable. */
function hasOtherTracer(): boolean {
  const api = (globalThis as Record<symbol, unknown>)[Symbol.for('opentelemetry.js.api.1')];
  return typeof api === 'object' && api !== null && 'trace' in api;
}
