// The check of traces for `gatefold doctor`. A wrong variable of OpenTelemetry stops no start, so it is easily missed.
import { asksForTraces } from '../../base/trace-switch.ts';
import { readTraceSettings } from '../trace/environment.ts';
import type { Installation, Report } from './finding.ts';

/** The variables that have no effect without OTEL_EXPORTER_OTLP_ENDPOINT, which names the receiver of traces. */
const DEPENDENT_VARIABLE = /^OTEL_(?:EXPORTER_OTLP_|TRACES_|BSP_)/;

export function checkTraces({ io: { env } }: Installation, report: Report): void {
  if (!asksForTraces(env)) {
    const names = Object.keys(env).filter((name) => DEPENDENT_VARIABLE.test(name) && (env[name] ?? '').trim() !== '');
    if (env.OTEL_TRACES_EXPORTER === 'none' || names.length === 0) return;
    report('warning', `${names.join(', ')}: no request is traced, because OTEL_EXPORTER_OTLP_ENDPOINT is not set`);
    return;
  }
  const state = readTraceSettings(env);
  if (state.kind === 'off') {
    if (!state.isDeliberate) report('wrong', `no request is traced: ${state.reason}`);
    return;
  }
  for (const { variable, reason } of state.ignored) report('warning', `${variable}: ${reason}`);
}
