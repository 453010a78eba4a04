// Writes spans as JSON of OTLP 1 (protobuf's rules for JSON, but with ids in hexadecimal). The text is joined from
// parts, because an object for each attribute and `JSON.stringify` would double the cost of tracing.

import type { SpanAttribute } from '../../api/controller/trace.ts';
import { quote } from '../../base/json-text.ts';
import { textOf } from '../../base/log.ts';
import type { Span } from './span.ts';

const KINDS = { internal: 1, server: 2, client: 3, producer: 4 } as const;
export type Kind = keyof typeof KINDS;

/** Null and undefined stand for no attribute. A controller without types can pass any value. */
export type Attributes = Readonly<Record<string, SpanAttribute | null | undefined>>;

/** The names of spans, and the names and texts of attributes, are cut to this many characters. */
const MAX_TEXT_LENGTH = 4096;
const MAX_ITEMS = 100;
/** Only this many of the given attributes are sent. The specification has the same limit for a span. */
const MAX_ATTRIBUTES = 128;
/** The times of spans are corrected when they differ from the clock of the machine by more milliseconds than this. */
const MAX_DRIFT = 50;

/** Copies the attributes of a controller. A value that is not a boolean, a number or a list of them becomes a text. */
export function copyAttributes(attributes: Attributes = {}): Attributes {
  const entries = Object.entries(attributes).filter(([, value]) => value !== undefined && value !== null);
  const copies = entries.slice(0, MAX_ATTRIBUTES).map(([name, value]) => {
    // `map` would keep the gaps of a list, which are no JSON.
    const copy = Array.isArray(value) ? Array.from(value.slice(0, MAX_ITEMS), toPrimitive) : toPrimitive(value);
    return [name, copy] as const;
  });
  return Object.fromEntries(copies);
}

function toPrimitive(value: unknown): string | number | boolean {
  return typeof value === 'number' || typeof value === 'boolean' ? value : textOf(value);
}

/** Returns about how many characters the JSON of the attributes has. */
export function sizeOf(attributes: Attributes): number {
  let size = 0;
  for (const name in attributes) size += name.length + 40 + String(attributes[name] ?? '').length;
  return size;
}

export function encodeAttributes(attributes: Attributes): string {
  let text = '';
  for (const name in attributes) {
    const value = attributes[name];
    if (value === undefined || value === null) continue;
    text += `${text === '' ? '' : ','}{"key":${encodeText(name)},"value":${encodeValue(value)}}`;
  }
  return text;
}

function encodeValue(value: SpanAttribute): string {
  if (typeof value === 'string') return `{"stringValue":${encodeText(value)}}`;
  if (typeof value === 'boolean') return `{"boolValue":${value}}`;
  if (typeof value === 'object') return `{"arrayValue":{"values":[${value.map(encodeValue)}]}}`;
  // Whole numbers of protobuf have 64 bits, so they are texts in JSON.
  if (Number.isSafeInteger(value)) return `{"intValue":"${value}"}`;
  return `{"doubleValue":${Number.isFinite(value) ? value : `"${value}"`}}`;
}

const NOT_ASCII = /[^\0-\x7f]/;
/** With the flag `u`, a pair of surrogates is one character, so only lone surrogates match. */
const LONE_SURROGATE = /\p{Surrogate}/gu;

/** Quotes a text, cut to MAX_TEXT_LENGTH, without lone surrogates: a collector can refuse the whole body for one. */
function encodeText(text: string): string {
  const cut = text.slice(0, MAX_TEXT_LENGTH);
  return quote(NOT_ASCII.test(cut) ? cut.replace(LONE_SURROGATE, '\ufffd') : cut);
}

/** The Unix time in milliseconds at which `performance.now()` is 0. */
let clockOffset = performance.timeOrigin;

/** Corrects the times of spans that are encoded later, if the clock of the machine has been set. */
export function updateClockOffset(): void {
  const current = Date.now() - performance.now();
  if (Math.abs(current - clockOffset) > MAX_DRIFT) clockOffset = current;
}

/** Returns nanoseconds of Unix time as text: a number is not exact. @param moment a time of `performance.now()` */
export function formatNanoseconds(moment: number): string {
  return `${Math.floor((clockOffset + moment) * 1000)}000`;
}

/** The bit of `flags` that says that the bit `IS_REMOTE` is meaningful (OTLP, `SpanFlags`). */
const HAS_IS_REMOTE = 0x100;
/** The bit of `flags` that says that the parent is in another process. */
const IS_REMOTE = 0x200;

export function encodeSpan(span: Span): string {
  const { traceId, spanId, parentSpanId, isRemoteParent, flags, tracestate, startedAt, endedAt, kind } = span;
  const parent = parentSpanId === undefined ? '' : `,"parentSpanId":"${parentSpanId}"`;
  const state = tracestate === '' ? '' : `,"traceState":${quote(tracestate)}`;
  const bits = flags + HAS_IS_REMOTE + (isRemoteParent ? IS_REMOTE : 0);
  const [start, end] = [formatNanoseconds(startedAt), formatNanoseconds(endedAt)];
  const status = span.hasFailed ? ',"status":{"code":2}' : '';
  // A controller without types can pass any value as the kind.
  const kindNumber = Object.hasOwn(KINDS, kind) ? KINDS[kind] : KINDS.internal;
  return `{"traceId":"${traceId}","spanId":"${spanId}"${parent}${state},"flags":${bits},"startTimeUnixNano":"${start}","endTimeUnixNano":"${end}"${status},"name":${encodeText(span.name)},"kind":${kindNumber},"attributes":[${encodeAttributes(span.attributes)}]}`;
}

/** Returns the texts before and after the spans in the body of a request. */
export function createEnvelope(resource: ReadonlyMap<string, string | number>, version: string): [string, string] {
  const attributes = encodeAttributes(Object.fromEntries(resource));
  const scope = JSON.stringify({ name: 'gatefold', version });
  return [
    `{"resourceSpans":[{"resource":{"attributes":[${attributes}]},"scopeSpans":[{"scope":${scope},"spans":[`,
    `],"schemaUrl":"${SCHEMA_URL}"}]}]}`,
  ];
}

/** The address of the semantic conventions, in the version whose names the spans use. */
const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.37.0';
