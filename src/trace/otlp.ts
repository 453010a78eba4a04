// Writes spans as JSON of OTLP 1 (protobuf's rules for JSON, but with ids in hexadecimal). The text is written by hand.
// An object for each span and `JSON.stringify` would cost more than a traced request may cost as a whole.
import { quote, quoteName } from '../base/json-text.ts';
import type { SpanAttribute } from '../controller/trace.ts';

export const KINDS = { internal: 1, server: 2, client: 3, producer: 4 } as const;
export type Kind = keyof typeof KINDS;

/** The most characters in the text of an attribute. Longer texts are cut. */
const MAX_TEXT_LENGTH = 4096;
/** The most items in a list. */
const MAX_ITEMS = 100;
/** The most attributes of a span, as in the specification. */
const MAX_ATTRIBUTES = 128;
/**
 * The largest difference in milliseconds that is accepted between the clock of the machine and the times of spans. When
 * the difference is larger, the times of later spans follow the clock.
 */
const MAX_DRIFT = 50;

/** @param name constant, or chosen by the author of a controller */
export function textAttribute(name: string, value: string): string {
  return `{"key":${quoteName(name)},"value":{"stringValue":${quote(cut(value))}}}`;
}

/** Encodes a whole number. JSON carries it as text, because protobuf's whole numbers have 64 bits. */
export function intAttribute(name: string, value: number): string {
  return `{"key":${quoteName(name)},"value":{"intValue":"${value}"}}`;
}

export function flagAttribute(name: string, value: boolean): string {
  return `{"key":${quoteName(name)},"value":{"boolValue":${value}}}`;
}

export function listAttribute(name: string, values: readonly unknown[]): string {
  const items = values.slice(0, MAX_ITEMS).map(encodeValue).join(',');
  return `{"key":${quote(name)},"value":{"arrayValue":{"values":[${items}]}}}`;
}

/** Encodes the attributes that a controller gives. Values of other types are sent as text. */
export function attributesOf(given: Readonly<Record<string, SpanAttribute>> | undefined): string[] {
  if (given === undefined) return [];
  return Object.entries(given)
    .filter(([, value]) => value !== undefined && value !== null)
    .slice(0, MAX_ATTRIBUTES)
    .map(([name, value]) =>
      Array.isArray(value) ? listAttribute(name, value) : `{"key":${quote(cut(name))},"value":${encodeValue(value)}}`,
    );
}

function encodeValue(value: unknown): string {
  if (typeof value === 'boolean') return `{"boolValue":${value}}`;
  if (typeof value === 'number' && Number.isSafeInteger(value)) return `{"intValue":"${value}"}`;
  if (typeof value === 'number') return `{"doubleValue":${Number.isFinite(value) ? value : `"${value}"`}}`;
  return `{"stringValue":${quote(cut(textOf(value)))}}`;
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return 'a value that has no text';
  }
}

const HALF = /\p{Surrogate}/gu;

/**
 * Cuts a text to the longest length and replaces halves of surrogate pairs. Protobuf allows only well-formed texts, so
 * a reader may refuse the whole body because of one half character.
 */
export function cut(text: string): string {
  return (text.length > MAX_TEXT_LENGTH ? text.slice(0, MAX_TEXT_LENGTH) : text).replace(HALF, '\ufffd');
}

let anchor = performance.timeOrigin;

/** Corrects the times of later spans after the clock of the machine has been set. */
export function followClock(): void {
  const now = Date.now() - performance.now();
  if (Math.abs(now - anchor) > MAX_DRIFT) anchor = now;
}

const MICROSECONDS = Array.from({ length: 1000 }, (_, i) => `${String(i).padStart(3, '0')}000`);
let lastMillisecond = 0;
let lastText = '';

/**
 * Formats a time. Most times have the same millisecond as the time before. So the text of that millisecond is cached,
 * because it is expensive to make the text of so large a number.
 *
 * @param moment a time of `performance.now()`
 * @returns nanoseconds of Unix time, exact to a microsecond
 */
export function nanoseconds(moment: number): string {
  const time = anchor + moment;
  const millisecond = Math.floor(time);
  if (millisecond !== lastMillisecond) {
    lastMillisecond = millisecond;
    lastText = String(millisecond);
  }
  return lastText + MICROSECONDS[Math.floor((time - millisecond) * 1000)];
}

const ERROR_STATUS = ',"status":{"code":2}';
/** The bit of `flags` that says that the bit `IS_REMOTE` is meaningful (OTLP, `SpanFlags`). */
const HAS_IS_REMOTE = 0x100;
/** The bit of `flags` that says that the parent is in another process. */
const IS_REMOTE = 0x200;

export interface SpanParts {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly isRemoteParent: boolean;
  readonly flags: number;
  readonly tracestate: string;
  /** The start of the span, as a time of `performance.now()`. */
  readonly startedAt: number;
  /** The end of the span, as a time of `performance.now()`. */
  readonly endedAt: number;
  readonly hasFailed: boolean;
  /** The text with the name and the kind, and with attributes that many spans share. */
  readonly beginning: string;
  /** The value of the attribute with which `beginning` ends; undefined when `beginning` ends with none. */
  readonly path: string | undefined;
  /** The text with the further attributes. */
  readonly rest: string;
}

/** Writes a span. Few pieces make the text, because each piece takes a part of the time. */
export function encodeSpan(span: SpanParts): string {
  const { traceId, spanId, parentSpanId, isRemoteParent, flags, tracestate, startedAt, endedAt, hasFailed } = span;
  const parent = parentSpanId === undefined ? '' : `,"parentSpanId":"${parentSpanId}"`;
  const state = tracestate === '' ? '' : `,"traceState":${quote(tracestate)}`;
  const bits = flags + HAS_IS_REMOTE + (isRemoteParent ? IS_REMOTE : 0);
  return `{"traceId":"${traceId}","spanId":"${spanId}"${parent}${state},"flags":${bits},"startTimeUnixNano":"${nanoseconds(startedAt)}","endTimeUnixNano":"${nanoseconds(endedAt)}"${hasFailed ? ERROR_STATUS : ''}${span.beginning}${span.path === undefined ? '' : quote(span.path)}${span.rest}]}`;
}

/** Returns the name and the kind, as the beginning of a span has them. The attributes follow, and no bracket. */
export function encodeName(name: string, kind: Kind): string {
  return `,"name":${quote(cut(name))},"kind":${KINDS[kind in KINDS ? kind : 'internal']},"attributes":[`;
}

/** @returns the texts before and after the spans in the body of a request to the collector */
export function createEnvelope(resource: ReadonlyMap<string, string | number>, version: string): [string, string] {
  const attributes = attributesOf(Object.fromEntries(resource)).join(',');
  return [
    `{"resourceSpans":[{"resource":{"attributes":[${attributes}]},"scopeSpans":[{"scope":{"name":"gatefold","version":${quote(version)}},"spans":[`,
    `],"schemaUrl":"${SCHEMA}"}]}]}`,
  ];
}

/** The address of the semantic conventions, in the version whose names the spans use. */
const SCHEMA = 'https://opentelemetry.io/schemas/1.37.0';
