// This file is compiled and never run: tsc refuses a schema in `static operations` that does not fit the operation.
import type { ControllerParams, Operations, Reply, StandardSchema } from '../../src/api/controller.ts';

interface NewUser {
  name: string;
}
declare const user: StandardSchema<{ name: string }, NewUser>;
declare const other: StandardSchema<{ age: string }, { age: number }>;

export class UserController {
  static operations: Operations<UserController> = {
    created: { body: user, status: 201 },
    index: { query: other },
    '*': { timeout: 5000 },
  };
  created(data: NewUser) {
    return data;
  }
  index() {
    return [];
  }
}

export class WrongController {
  static operations: Operations<WrongController> = {
    // @ts-expect-error it makes an age, and the operation takes a name
    created: { body: other },
  };
  created(data: NewUser) {
    return data;
  }
}

export class MisspeltController {
  static operations: Operations<MisspeltController> = {
    // @ts-expect-error there is no such operation
    createt: { body: user },
  };
  created(data: NewUser) {
    return data;
  }
}

declare const id: StandardSchema<{ id: string }, { id: number }>;

export class PathController {
  static operations = {
    'GET {id}': { path: id, results: 'declared', closed: true },
  } satisfies Operations<PathController>;
  'GET {id}'(_: undefined, { path, headers }: ControllerParams<{ path: { id: number }; headers: { 'x-a'?: string } }>) {
    return [path.id.toFixed(), headers['x-a']];
  }
}

export class WrongPathController {
  static operations: Operations<WrongPathController> = {
    // @ts-expect-error it makes a number, and the operation takes a text
    'GET {id}': { path: id },
  };
  'GET {id}'(_: undefined, { path, headers }: ControllerParams<{ path: { id: string } }>) {
    return [path.id, headers.host];
  }
}

interface Page {
  page: number;
}
interface User {
  id: string;
  born: Date;
  tags?: string[];
}
declare const page: StandardSchema<{ page: string }, Page>;
declare const shown: StandardSchema<User, { id: string; born: string }>;
declare const listed: StandardSchema<unknown, { id: string; born: Date; tags: string[] }[]>;

/** Schemas that fit in every place, as an annotation and by `satisfies`. */
export class PageController {
  static operations = {
    index: { query: page, result: listed },
    created: { body: user, query: page, result: shown },
    find: { query: page, result: shown },
    search: { body: user, query: page },
    'GET {id}': { query: page, result: page },
    'POST {id}': { query: page, body: user },
    PUT: { query: page },
    GET: { query: page },
    hello: { query: page, result: page },
  } satisfies Operations<PageController>;
  async index(data: Page, params: ControllerParams<{ query: Page }>): Promise<User[]> {
    return [data, params] as never;
  }
  created(data: NewUser, params?: ControllerParams<{ query: Page }>): Reply<201, User> {
    return [data, params] as never;
  }
  find(data: Page): User | undefined {
    return data as never;
  }
  search(data: NewUser, params: ControllerParams<{ query: Page }>) {
    return [data, params];
  }
  'GET {id}'(data?: Page) {
    return data;
  }
  'POST {id}'(data: unknown, { query }: ControllerParams<{ query: Page }>) {
    return [data, query];
  }
  PUT(data: NewUser, { query }: ControllerParams<{ query: Page }>) {
    return [data, query];
  }
  GET(data: Page) {
    return data;
  }
  hello(): unknown {
    return 1;
  }
}

/** A JSON Schema that is written in its place. */
export class WrittenController {
  static operations = {
    POST: {
      body: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        description: 'A user',
        type: 'object',
        properties: { name: { type: 'string', minLength: 1 } },
        required: ['name'],
        additionalProperties: false,
      },
      result: { type: 'array', items: { $ref: '#/$defs/name' }, $defs: { name: { type: 'string' } }, maxItems: 3 },
    },
    // @ts-expect-error the keyword is misspelt
    PUT: { body: { type: 'object', propertys: {} } },
  } satisfies Operations<WrittenController>;
  POST({ name }: NewUser): string[] {
    return [name];
  }
  PUT(data: NewUser) {
    return data;
  }
}

/** Any JSON value, as Supabase declares it. */
type Plain = string | number | boolean | null | { [key: string]: Plain | undefined } | Plain[];
declare const plain: StandardSchema<unknown, { meta: Plain }[]>;

export class PlainController {
  static operations = { index: { result: plain } } satisfies Operations<PlainController>;
  index(): { meta: Plain }[] {
    return [];
  }
}

/** The columns of a row that a schema does not declare are not sent. */
interface Row extends User {
  passwordHash: string;
  boss: { id: string; passwordHash: string } | null;
}
declare const shownRow: StandardSchema<unknown, { id: string; born: Date; boss: { id: string } | null }>;
declare const oddRow: StandardSchema<unknown, { id: string; boss: { id: number } }>;
declare const shownRows: StandardSchema<unknown, { id: string }[]>;

export class RowController {
  static operations = {
    'GET {id}': { result: shownRow },
    GET: { result: shownRows },
    POST: { result: shownRow },
    // @ts-expect-error the id of the boss is a text
    PUT: { result: oddRow },
    // @ts-expect-error the result is no list
    PATCH: { result: shownRows },
  } satisfies Operations<RowController>;
  'GET {id}'(): Row | undefined {
    return undefined;
  }
  async GET(): Promise<Row[]> {
    return [];
  }
  POST(): Reply<201, Row> {
    return 1 as never;
  }
  PUT(): Row {
    return 1 as never;
  }
  PATCH(): Row {
    return 1 as never;
  }
}

export class MisfitController {
  static operations: Operations<MisfitController> = {
    // @ts-expect-error the query makes an age, and data is a page
    index: { query: other },
    // @ts-expect-error params.query is a page
    created: { query: other },
    // @ts-expect-error without a body, data is the query
    find: { query: page },
    // @ts-expect-error params.query is a page
    search: { body: user, query: other },
    // @ts-expect-error params.query is of texts, for the params say nothing else
    'GET {id}': { query: page },
    // @ts-expect-error the result has no age
    patch: { result: other },
    // @ts-expect-error nothing of the result's list is in it
    'POST x': { result: shown },
    // @ts-expect-error the Reply is of a user
    red: { result: page },
  };
  index(data: Page) {
    return data;
  }
  created(data: NewUser, params: ControllerParams<{ query: Page }>) {
    return [data, params];
  }
  find(data: NewUser) {
    return data;
  }
  search(data: NewUser, params: ControllerParams<{ query: Page }>) {
    return [data, params];
  }
  'GET {id}'(_: unknown, params: ControllerParams) {
    return params.query;
  }
  patch(): User {
    return 1 as never;
  }
  'POST x'(): Promise<User[]> {
    return 1 as never;
  }
  red(): Promise<Reply<201, User>> {
    return 1 as never;
  }
}
