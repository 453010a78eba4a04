// Runs a service in this process whose requests are traced, and the collector that receives the spans.
import type { TestContext } from 'node:test';
import { parseSettings } from '../../src/base/config.ts';
import { createLog } from '../../src/base/log.ts';
import { startTracing } from '../../src/operate/trace/tracing.ts';
import { type Collector, startCollector } from './collector.ts';
import { type LogLine, type Service, type ServiceOptions, startService } from './service.ts';

export interface TracedOptions extends ServiceOptions {
  /** Environment variables of OpenTelemetry. */
  readonly env?: Readonly<Record<string, string>>;
  /** The properties of the service file that say where a caller sends a key. */
}

export interface TracedService extends Service {
  readonly collector: Collector;
  /** The exporter's log. */
  readonly traceLines: LogLine[];
  /** Ends the tracing, which sends the waiting spans. */
  flush(): Promise<void>;
  status(): { readonly exported: number; readonly dropped: number };
}

export type Tracer = Pick<TracedService, 'traceLines' | 'flush' | 'status'>;

/** Traces all requests to this process until the end of the test. */
export function startTracer(
  test: TestContext,
  { url }: Collector,
  { env = {}, settings = {} }: Pick<TracedOptions, 'env' | 'settings'> = {},
): Tracer {
  const traceLines: LogLine[] = [];
  const sink = { write: (line: string) => void traceLines.push(JSON.parse(line)), flush: () => {} };
  const tracing = startTracing({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '10', ...env },
    settings: parseSettings({ ...settings }, [], { cores: 1 }),
    service: { title: 'shop', version: '1.2.3' },
    gatefoldVersion: '0.1.0',
    log: createLog({ level: 'debug', sink }),
  });
  if (tracing === undefined) throw new Error('tracing is off');
  let closed: Promise<void> | undefined;
  const flush = () => {
    closed ??= tracing.close();
    return closed;
  };
  test.after(flush);
  return { traceLines, flush, status: tracing.status };
}

/** Starts the service and the collector, and closes them after the test. */
export async function startTraced(test: TestContext, { env = {}, ...options }: TracedOptions): Promise<TracedService> {
  const collector = await startCollector();
  const tracer = startTracer(test, collector, { env, settings: options.settings ?? {} });
  const service = await startService(options);
  test.after(async () => {
    await service.close();
    await collector.close();
  });
  return { ...service, ...tracer, collector };
}
