// The entry point of this folder: turns tracing on in a worker. Other parts of the service import only this file of the
// folder. Events reach this folder only through public diagnostics channels.
import { AsyncLocalStorage } from 'node:async_hooks';
import { hostname } from 'node:os';
import type { Log } from '../../base/log.ts';
import type { Settings } from '../../base/settings.ts';
import { withoutBrackets } from '../../base/values.ts';
import { traceClients } from './client-spans.ts';
import { type Environment, readTraceSettings, type TraceSettings } from './environment.ts';
import { createExporter } from './exporter.ts';
import { createEnvelope } from './otlp.ts';
import { createBatchSender } from './post.ts';
import { traceRequests } from './request-spans.ts';
import type { Span } from './span.ts';

export interface TracingOptions {
  readonly env: Environment;
  readonly settings: Pick<Settings, 'tracePropagate'>;
  readonly service: { readonly title: string; readonly version: string };
  readonly gatefoldVersion: string;
  readonly log: Log;
}

/** Milliseconds for the last spans of a worker that ends. The supervisor gives it 5 s after its drain. */
const CLOSE_TIMEOUT = 3000;

/** Logs whether requests are traced, and every variable that is ignored. Only the supervisor calls this function. */
export function announceTracing(env: Environment, log: Log): void {
  const state = readTraceSettings(env);
  if (state.kind === 'off') {
    if (state.isDeliberate) return log.info('traces-disabled', { reason: state.reason });
    return log.warn('traces-off', { reason: state.reason });
  }
  const { endpoint, samplerName: sampler } = state.settings;
  for (const value of state.ignored) log.warn('trace-variable-ignored', { ...value });
  // The user name, password or query of a URL can contain a key, so none of them is logged.
  log.info('traces-on', { endpoint: endpoint.origin + endpoint.pathname, sampler });
}

export function startTracing(options: TracingOptions) {
  const { env, service, gatefoldVersion, log } = options;
  const state = readTraceSettings(env);
  if (state.kind === 'off') return undefined;
  const { settings } = state;
  const storage = new AsyncLocalStorage<Span | undefined>();
  const exporter = createExporter({
    ...settings,
    send: createBatchSender(settings, `gatefold/${gatefoldVersion}`),
    envelope: createEnvelope(resourceOf(settings, service, gatefoldVersion), gatefoldVersion),
    log,
  });
  const tracer = { storage, add: exporter.add };
  const unsubscribers = [
    traceRequests({ tracer, sampler: settings.sampler }),
    traceClients({ tracer, allowsHost: createHostMatcher(options.settings.tracePropagate) }),
  ];
  return {
    status: exporter.status,
    /** Ends all subscriptions, and sends the spans that still wait, for at most CLOSE_TIMEOUT. Never rejects. */
    async close(): Promise<void> {
      for (const unsubscribe of unsubscribers) unsubscribe();
      await exporter.close(CLOSE_TIMEOUT);
    },
  };
}

/** Values from variables replace the attributes that the service finds by itself, except `telemetry.sdk.*`. */
function resourceOf({ resource }: TraceSettings, service: TracingOptions['service'], gatefoldVersion: string) {
  return new Map<string, string | number>([
    ['service.name', service.title],
    ['service.version', service.version],
    ['host.name', hostname()],
    ['process.pid', process.pid],
    ...resource,
    ['telemetry.sdk.name', 'gatefold'],
    ['telemetry.sdk.language', 'nodejs'],
    ['telemetry.sdk.version', gatefoldVersion],
  ]);
}

/** Returns whether a host gets the headers of the trace; `*.internal` also matches `a.b.internal`. */
function createHostMatcher(hosts: readonly string[] | 'all'): (host: string) => boolean {
  if (hosts === 'all') return () => true;
  return (host) => {
    const name = withoutBrackets(host.toLowerCase());
    return hosts.some((pattern) => (pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern));
  };
}
