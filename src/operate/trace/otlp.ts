// Writes spans as JSON of OTLP 1 (protobuf's rules for JSON, but with ids in hexadecimal). The text is joined from
// parts, because an object for each span and `JSON.stringify` would alone exceed the goal for the cost of tracing.

import type { SpanAttribute } from '../../api/controller/trace.ts';
import { quote, quoteName } from '../../base/json-text.ts';
import { textOf } from '../../base/log.ts';
import type { Span } from './span.ts';

const KINDS = { internal: 1, server: 2, client: 3, producer: 4 } as const;
export type Kind = keyof typeof KINDS;

/** The names of spans, and the names and texts of attributes except `url.path`, are cut to this many characters. */
const MAX_TEXT_LENGTH = 4096;
const MAX_ITEMS = 100;
/** Only this many of the given attributes are sent. The specification has the same limit for a span. */
const MAX_ATTRIBUTES = 128;
/** The times of spans are corrected when they differ from the clock of the machine by more milliseconds than this. */
const MAX_DRIFT = 50;

/** @param name a constant. `quoteName` keeps every name in memory, so a name from a request is not allowed. */
export function textAttribute(name: string, value: string): string {
  return `{"key":${quoteName(name)},"value":{"stringValue":${quote(toValidText(value))}}}`;
}

/** Encodes a whole number as text, because protobuf's whole numbers have 64 bits. @param name a constant, as above */
export function intAttribute(name: string, value: number): string {
  return `{"key":${quoteName(name)},"value":{"intValue":"${value}"}}`;
}

export function booleanAttribute(name: string, value: boolean): string {
  return `{"key":${quoteName(name)},"value":{"boolValue":${value}}}`;
}

/** @param name any text, also from a request or a controller, because it is not kept in memory */
export function listAttribute(name: string, values: readonly unknown[]): string {
  const items = values.slice(0, MAX_ITEMS).map(encodeValue).join(',');
  return `{"key":${quote(toValidText(name))},"value":{"arrayValue":{"values":[${items}]}}}`;
}

/**
 * Encodes the attributes that a controller or a variable sets, without those that are null or undefined. A value that
 * is not a boolean, a number or a list is sent as text.
 */
export function attributesOf(attributes: Readonly<Record<string, SpanAttribute>> | undefined): string[] {
  if (attributes === undefined) return [];
  return Object.entries(attributes)
    .filter(([, value]) => value !== undefined && value !== null)
    .slice(0, MAX_ATTRIBUTES)
    .map(([name, value]) =>
      Array.isArray(value)
        ? listAttribute(name, value)
        : `{"key":${quote(toValidText(name))},"value":${encodeValue(value)}}`,
    );
}

function encodeValue(value: unknown): string {
  if (typeof value === 'boolean') return `{"boolValue":${value}}`;
  if (typeof value === 'number' && Number.isSafeInteger(value)) return `{"intValue":"${value}"}`;
  if (typeof value === 'number') return `{"doubleValue":${Number.isFinite(value) ? value : `"${value}"`}}`;
  return `{"stringValue":${quote(toValidText(textOf(value)))}}`;
}

/** With the flag `u`, a pair of surrogates is one character, so only lone surrogates match. */
const LONE_SURROGATE = /\p{Surrogate}/gu;

/**
 * Cuts a text to MAX_TEXT_LENGTH, and replaces lone surrogates (halves of a character). Protobuf allows only
 * well-formed texts, so a collector can refuse the whole body because of a lone surrogate.
 */
export function toValidText(text: string): string {
  return text.slice(0, MAX_TEXT_LENGTH).replace(LONE_SURROGATE, '\ufffd');
}

/** The Unix time in milliseconds at which `performance.now()` is 0. */
let clockOffset = performance.timeOrigin;

/** Corrects the times of spans that are encoded later, if the clock of the machine has been set. */
export function updateClockOffset(): void {
  const current = Date.now() - performance.now();
  if (Math.abs(current - clockOffset) > MAX_DRIFT) clockOffset = current;
}

/** The last six digits of a time in nanoseconds, by the microsecond of its millisecond (0 to 999): `042000` for 42. */
const MICROSECOND_DIGITS = Array.from({ length: 1000 }, (_, i) => `${String(i).padStart(3, '0')}000`);
let cachedMillisecond = 0;
let cachedText = '';

/**
 * Formats a time. The text of the last millisecond is cached, because most times have the same millisecond as the time
 * before, and it is expensive to make the text of so large a number.
 *
 * @param moment a time of `performance.now()`
 * @returns nanoseconds of Unix time, exact to a microsecond
 */
export function formatNanoseconds(moment: number): string {
  const time = clockOffset + moment;
  const millisecond = Math.floor(time);
  if (millisecond !== cachedMillisecond) {
    cachedMillisecond = millisecond;
    cachedText = String(millisecond);
  }
  return cachedText + MICROSECOND_DIGITS[Math.floor((time - millisecond) * 1000)];
}

const ERROR_STATUS = ',"status":{"code":2}';
/** The bit of `flags` that says that the bit `IS_REMOTE` is meaningful (OTLP, `SpanFlags`). */
const HAS_IS_REMOTE = 0x100;
/** The bit of `flags` that says that the parent is in another process. */
const IS_REMOTE = 0x200;

/** Writes a span. The text is joined from few pieces, because each piece costs time. */
export function encodeSpan(span: Span): string {
  const { traceId, spanId, parentSpanId, isRemoteParent, flags, tracestate, startedAt, endedAt, hasFailed } = span;
  const parent = parentSpanId === undefined ? '' : `,"parentSpanId":"${parentSpanId}"`;
  const state = tracestate === '' ? '' : `,"traceState":${quote(tracestate)}`;
  const bits = flags + HAS_IS_REMOTE + (isRemoteParent ? IS_REMOTE : 0);
  return `{"traceId":"${traceId}","spanId":"${spanId}"${parent}${state},"flags":${bits},"startTimeUnixNano":"${formatNanoseconds(startedAt)}","endTimeUnixNano":"${formatNanoseconds(endedAt)}"${hasFailed ? ERROR_STATUS : ''}${span.beginning}${span.path === undefined ? '' : quote(span.path)}${span.rest}]}`;
}

/**
 * Returns the name and the kind as JSON that ends where the first attribute begins. A controller without types can pass
 * any value as the kind.
 */
export function encodeNameAndKind(name: string, kind: Kind): string {
  const kindNumber = Object.hasOwn(KINDS, kind) ? KINDS[kind] : KINDS.internal;
  return `,"name":${quote(toValidText(name))},"kind":${kindNumber},"attributes":[`;
}

export function createEnvelope(
  resource: ReadonlyMap<string, string | number>,
  gatefoldVersion: string,
): [string, string] {
  const attributes = attributesOf(Object.fromEntries(resource)).join(',');
  return [
    `{"resourceSpans":[{"resource":{"attributes":[${attributes}]},"scopeSpans":[{"scope":{"name":"gatefold","version":${quote(gatefoldVersion)}},"spans":[`,
    `],"schemaUrl":"${SCHEMA_URL}"}]}]}`,
  ];
}

/** The address of the semantic conventions, in the version whose names the spans use. */
const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.37.0';
