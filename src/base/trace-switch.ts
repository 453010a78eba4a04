// Says whether the environment asks for traces, without a file of the room that makes them.

type Environment = Readonly<Record<string, string | undefined>>;

/** One of the two variables names a collector. Without them no request is traced. */
export function asksForTraces({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: tracesEndpoint,
}: Environment): boolean {
  return (endpoint ?? '').trim() !== '' || (tracesEndpoint ?? '').trim() !== '';
}
