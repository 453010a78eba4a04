// Checks whether the environment asks for traces, without loading the tracing code.

/** Returns whether one of the two variables names a collector of traces. Without a collector, no request is traced. */
export function asksForTraces({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: tracesEndpoint,
}: NodeJS.ProcessEnv): boolean {
  return (endpoint ?? '').trim() !== '' || (tracesEndpoint ?? '').trim() !== '';
}
