// The types of the client, derived from the types of the controllers. The arguments of a call have the operation's
// types, in the form that JSON, a form or a URL can carry. The result of a call has the type of the parsed answer.
import type { Verb } from '../../base/route-name.ts';
import type { EventStream } from '../controller/event-stream.ts';
import type { Reply } from '../controller/reply.ts';
import type { ServerEvent } from './events.ts';

export interface ClientOptions {
  /** The header `Authorization`, such as `Bearer gfk_…`, or a function that returns it. Its error rejects the call. */
  readonly authorization?: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  /** Headers of every request. A call that has headers follows no redirect. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Maximum milliseconds until the head of an answer has arrived, and again until its body has; default: no limit. The
   * body of an event stream has no limit.
   */
  readonly timeout?: number | undefined;
  /** A function to use instead of the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
}

/** The options of one call. */
export interface CallOptions {
  /** Aborts the call, which is then rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** The timeout of this call in milliseconds, instead of `timeout` of the client. */
  readonly timeout?: number | undefined;
  /** Headers of this request. A header replaces the client's header of the same name. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The promise of a result. A failed call is rejected with an `ApiError`; `createClient` names the exceptions. */
export interface Call<T> extends Promise<T> {
  /** The answer with its body unread, for example to read its headers, or to download its body as a stream. */
  readonly response: Promise<Response>;
}

/** The client of a service. `Groups` maps the name that each group has in the URL to the type of its controller. */
export type Client<Groups> = { readonly [Name in keyof Groups]: GroupClient<InstanceOf<Groups[Name]>> };

type InstanceOf<Controller> = Controller extends new (...args: never[]) => infer Instance ? Instance : Controller;

type GroupClient<Group> = {
  readonly [Name in keyof Group as OperationName<Name, Group[Name]>]: Group[Name] extends (
    ...args: infer Args
  ) => infer Result
    ? (...args: ArgumentsOf<Name, Args[0], Args[1]>) => Call<Answer<Awaited<Result>>>
    : never;
};

type OperationName<Name, Member> = Name extends `_${string}`
  ? never
  : Name extends string
    ? Member extends Method
      ? Name
      : never
    : never;

type Method = (...args: never[]) => unknown;
type Bodiless = 'GET' | 'HEAD' | 'DELETE';
type Nothing = Record<never, never>;
/** A list of one argument, which is optional if all its fields are. */
type OptionsArgument<T> = Nothing extends T ? [options?: T] : [options: T];

/** The method and the pattern of a route: `GET` and `{id}` for `'GET {id}'`; undefined when the name is no route. */
type RouteOf<Name> = Name extends `${infer V extends Verb | 'ANY'} ${infer Pattern}`
  ? [V, Pattern]
  : Name extends Verb | 'ANY'
    ? [Name, '']
    : undefined;

type ArgumentsOf<Name, Data, Params> =
  RouteOf<Name> extends [infer V, infer Pattern extends string]
    ? OptionsArgument<
        CallOptions &
          // Without a method, the client sends POST.
          (V extends 'ANY' ? { readonly method?: Verb | undefined } : unknown) &
          PathPart<Pattern, Params> &
          (V extends Bodiless
            ? QueryPart<QueryOf<Params> & DataQuery<Data>>
            : BodyPart<Data> & QueryPart<QueryOf<Params>>)
      >
    : [...DataArgument<Sent<Data>>, ...OptionsArgument<NamedOptions & QueryPart<QueryOf<Params>>>];

/** The options of an operation that is no route. */
interface NamedOptions extends CallOptions {
  /** Segments of the URL after the operation. The operation gets them as `params.slugs`. */
  readonly slugs?: readonly (string | number)[] | undefined;
  /**
   * The HTTP method; default: the method that the operation's name stands for (`index` is GET), else POST. With GET,
   * HEAD and DELETE, the data of the operation is sent as the query.
   */
  readonly method?: Verb | undefined;
}

/** A list of one argument, the data, which is optional if the operation can do without it. */
type DataArgument<Data> = undefined extends Data ? [data?: Data] : Nothing extends Data ? [data?: Data] : [data: Data];
type BodyPart<Data> = undefined extends Data ? { readonly body?: Sent<Data> } : { readonly body: Sent<Data> };
type QueryPart<Query> = Nothing extends Query ? { readonly query?: Query | undefined } : { readonly query: Query };
type PathPart<Pattern extends string, Params> =
  CapturedNames<Pattern> extends never ? Nothing : { readonly path: PathValues<CapturedNames<Pattern>, Params> };

type QueryValue = string | number | boolean | Date | null | undefined;
type AnyQuery = Readonly<Record<string, QueryValue | readonly QueryValue[]>>;
type QueryOf<Params> = Params extends { query: infer Query }
  ? string extends keyof Query
    ? AnyQuery
    : Sent<Query>
  : AnyQuery;
/** The data of a route without a body, as a part of its query. */
type DataQuery<Data> = unknown extends Data ? unknown : [Data] extends [undefined] ? unknown : Sent<NonNullable<Data>>;

/** The names that a pattern captures: `'id' | 'path*'` for `{id}/items/{path*}`. The star marks the rest of a URL. */
type CapturedNames<Pattern extends string> = Pattern extends `${string}{${infer Name}}${infer Rest}`
  ? Name | CapturedNames<Rest>
  : never;
type PathValues<Name extends string, Params> = {
  readonly [N in Name as N extends `${infer Plain}*` ? Plain : N]: N extends `${string}*`
    ? string | readonly string[]
    : PathValue<N, Params>;
};
type PathValue<Name, Params> = Params extends { path: infer Path }
  ? Name extends keyof Path
    ? SentSegment<Path[Name]>
    : SegmentValue
  : SegmentValue;
type SegmentValue = string | number | boolean | Date;
type SentSegment<T> = string extends T ? SegmentValue : Sent<T>;

/**
 * The types of the values that a caller may send for the type `T` of an operation's parameter. For example, a `Date`
 * may also be sent as its text, and an object with files may also be sent as a form.
 */
export type Sent<T> = unknown extends T
  ? T
  : T extends Scalar
    ? T
    : T extends Date
      ? Date | string
      : T extends Bytes
        ? // Before TypeScript 5.7, `Uint8Array` takes no argument.
          Blob | ArrayBuffer | ReturnType<typeof Uint8Array.of> | ReadableStream<Uint8Array>
        : T extends readonly (infer Item)[]
          ? // A list of itself, as in any JSON value, is not mapped before it is needed.
            Item[] extends T
            ? T extends Item[]
              ? Sent<Item>[]
              : readonly Sent<Item>[]
            : { [Index in keyof T]: Sent<T[Index]> }
          : { [Key in keyof T]: Sent<T[Key]> } | (true extends HasFile<T> ? FormData : never);

type Scalar = string | number | boolean | null | undefined;
type HasFile<T> = { [Key in keyof T]-?: T[Key] extends Blob | readonly Blob[] | undefined ? true : never }[keyof T];
type Bytes = Blob | Uint8Array | ReadableStream | Response | NodeReadable;
/** A stream of Node, described without the types of Node, which a front end lacks. */
interface NodeReadable {
  pipe: Method;
  read: Method;
}

/**
 * The type to which the client parses an answer, for the type of an operation's result. An object or a list is sent as
 * it is. Nothing and `true` become `Done`. Any other value is put into an object: `7` is sent as `{ data: 7 }`.
 */
export type Answer<Result> = unknown extends Result
  ? Result
  : // biome-ignore lint/suspicious/noConfusingVoidType: an operation without `return` has the result type `void`.
    [Result] extends [void]
    ? Done
    : Result extends null | undefined | true
      ? Done
      : Result extends Scalar
        ? { data: Result }
        : Result extends Reply<infer Status, infer Body>
          ? AnswerOfReply<Status, Body>
          : Result extends EventStream<infer Data>
            ? AsyncIterable<ServerEvent<Json<Data>>>
            : Result extends Bytes
              ? Blob
              : Json<Result>;

/** The answer of a `Reply`; undefined when the `Reply` has no body, or a status that never has a body. */
type AnswerOfReply<Status, Body> = Status extends 204 | 205 | 304
  ? undefined
  : Body extends undefined
    ? undefined
    : Answer<Body>;

/** The answer of an operation that returns undefined, null or true. */
export interface Done {
  status: 'success';
  message: string;
  /** Unix time, in seconds. */
  timestamp: number;
}

/** The type of a value after it was sent as JSON: a `Date` has become a text, and a method is removed. */
export type Json<T> = unknown extends T
  ? T
  : T extends Scalar
    ? T
    : T extends { toJSON: (...args: never[]) => infer Plain }
      ? Json<Plain>
      : T extends readonly (infer Item)[]
        ? Item[] extends T
          ? T extends Item[]
            ? Json<Item>[]
            : readonly Json<Item>[]
          : { [Index in keyof T]: Json<T[Index]> }
        : { [Key in keyof T as Key extends symbol ? never : T[Key] extends Method ? never : Key]: Json<T[Key]> };

export type { ServerEvent };
