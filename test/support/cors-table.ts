// Requests of web pages, each with the header lines that a browser needs to see. The table is run in one process
// (callers/access/cors.test.ts), over workers (slow/cors.slow.ts), and in part by a browser (slow/cors-browser.slow.ts).
import assert from 'node:assert/strict';
import { GATEFOLD, type ServiceOptions, sendRaw } from './service.ts';

/** The header lines by their names without `access-control-` and `allow-`. An answer to OPTIONS has its length, too. */
type CorsAnswer = Readonly<Record<string, string | number>> & { readonly status: number };

export interface CorsRow {
  /** The method and the target. */
  readonly request: string;
  /** The header lines of the request. */
  readonly lines: readonly string[];
  readonly body: string;
  readonly answer: CorsAnswer;
}
export interface CorsService {
  readonly files: Readonly<Record<string, string>>;
  readonly rows: readonly CorsRow[];
}

const REFUSED_KEY = 'Bearer gfk_revoked';
export const CORS_SETTINGS = { BODY_LIMIT: '1000' };
/** The options of a service in this process, which has no table of keys. */
export const CORS_OPTIONS: ServiceOptions = {
  settings: CORS_SETTINGS,
  parts: {
    credentials: {
      identify: (key) => (key === REFUSED_KEY ? { kind: 'refused', reason: 'revoked' } : { kind: 'foreign' }),
    },
  },
  expectedErrors: ['request-failed', 'error-format-failed'],
};

const row = (request: string, lines: readonly string[], answer: CorsAnswer, body = ''): CorsRow => ({
  ...{ request, lines, answer, body },
});
const ALL_METHODS = 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS';
const OPEN = { origin: '*', methods: ALL_METHODS, headers: '*, Authorization' };
const FORM = 'Content-Type: application/x-www-form-urlencoded';
const JSON_BODY = 'Content-Type: application/json';
const open = (status: number, request: string, lines: readonly string[] = [], body = '') =>
  row(request, lines, { ...OPEN, status, 'expose-headers': '*' }, body);
const openPreflight = (target: string, ...lines: readonly string[]) =>
  row(`OPTIONS ${target}`, lines, { ...OPEN, status: 200, 'max-age': '86400', 'content-length': '0' });

/** Without `cors` a page of any origin may read each answer, also errors. */
const OPEN_SERVICE: CorsService = {
  files: {
    'XController.mjs': `export default class {
      index() { return {} } created() { return {} } red() { return {} } updated() { return {} } deleted() { return {} }
    }`,
  },
  rows: [
    open(200, 'GET /api/x'),
    open(200, 'HEAD /api/x'),
    open(200, 'POST /api/x', [FORM], 'a=1'),
    open(200, 'POST /api/x', ['Content-Type: text/plain'], 'a'),
    open(200, 'POST /api/x', [JSON_BODY], '{}'),
    open(200, 'PUT /api/x', [JSON_BODY], '{}'),
    open(200, 'PATCH /api/x/updated'),
    open(200, 'DELETE /api/x'),
    open(200, 'GET /api/x', ['X-Request-Id: page-1', 'X-Anything: 1']),
    open(200, 'GET /api/x', ['Authorization: Bearer foreign']),
    open(400, 'POST /api/x', [JSON_BODY], '{'),
    open(401, 'GET /api/x', [`Authorization: ${REFUSED_KEY}`]),
    open(404, 'GET /api/absent'),
    open(413, 'POST /api/x', [JSON_BODY], `"${'a'.repeat(2000)}"`),
    open(500, 'PATCH /api/x'),
    ...['/api', '/api/', '/api/x', '/api/absent', '/api/absent/a', '/api/idp-signin', '*'].map((target) =>
      openPreflight(target, 'Authorization: '),
    ),
    openPreflight('*', 'Authorization: x'),
    // The parser refuses these bytes, which are no request.
    open(400, 'GET /api/x', ['Transfer-Encoding: x']),
  ],
};

const LISTED = 'https://a.example';
const LIST_FILE = `import { defineService, ErrorReply } from '${GATEFOLD}';
  export default defineService({
    strict: true,
    headers: { 'Strict-Transport-Security': 'max-age=1' },
    cors: { origins: ['${LISTED}', 'https://*.b.example'], credentials: true, maxAge: 60 },
    authenticate: () => undefined,
    formatError: ({ status, code }) => code === 'TEXT'
      ? new ErrorReply(418, 'plain', { 'Content-Type': 'text/plain', 'X-Own': '1' })
      : code === 'ENVELOPE' ? undefined : new ErrorReply(status, { code }),
  });`;
const LIST_CONTROLLER = `import { HttpError, Reply } from '${GATEFOLD}';
  const fail = (code) => { throw new HttpError(400, code, 'It fails', { headers: { Allow: 'GET', 'X-Two': '2' } }); };
  export default class {
    'GET'() { return {} }
    'POST'() { return {} }
    'GET reply'() { return new Reply(200, {}, { 'X-Total': '7', Vary: 'Accept' }) }
    'GET text'() { fail('TEXT') }
    'GET envelope'() { fail('ENVELOPE') }
  }`;
const ask = (origin: string | undefined) => (origin === undefined ? [] : [`Origin: ${origin}`]);
const asksFor = (method: string, headers?: string) => [
  ...[`Access-Control-Request-Method: ${method}`],
  ...(headers === undefined ? [] : [`Access-Control-Request-Headers: ${headers}`]),
];
const listed = (status: number, request: string, expose: string, origin = LISTED, vary = 'Origin') =>
  row(request, ask(origin), { status, origin, credentials: 'true', vary, 'expose-headers': expose });
const TYPE = 'Content-Type';
const EXPOSED = 'Strict-Transport-Security, X-Request-Id';
const UNLISTED =
  'null https://b.example https://a.example.evil https://a.example:8443 http://a.example https://evil-b.example ' +
  'https://evil.example/.b.example https://evil@x.b.example https://x.b.example.evil http://xx.b.example';
const PREFLIGHT = { status: 200, vary: 'Origin', 'content-length': '0' };
const LISTED_PREFLIGHT = { ...PREFLIGHT, credentials: 'true', methods: ALL_METHODS, 'max-age': '60' };

const LIST_SERVICE: CorsService = {
  files: { 'service.mjs': LIST_FILE, 'XController.mjs': LIST_CONTROLLER },
  rows: [
    ...[LISTED, 'https://x.b.example', 'https://x.y.b.example', 'https://x-_1.b.example'].flatMap((origin) => [
      listed(200, 'GET /api/x', EXPOSED, origin),
      row('OPTIONS /api/x', [...ask(origin), ...asksFor('PUT', 'x-a, content-type')], {
        ...{ ...LISTED_PREFLIGHT, origin, headers: 'x-a, content-type' },
      }),
    ]),
    row('OPTIONS /api/x', [...ask(LISTED), ...asksFor('GET')], { ...LISTED_PREFLIGHT, origin: LISTED }),
    row('OPTIONS /api/x', [...ask(LISTED), ...asksFor('GET', '')], { ...LISTED_PREFLIGHT, origin: LISTED }),
    listed(200, 'GET /api/x/reply', `${TYPE}, X-Total, Vary, Content-Length, ${EXPOSED}`, LISTED, 'Accept, Origin'),
    listed(418, 'GET /api/x/text', `${TYPE}, Cache-Control, X-Own, Allow, X-Two, ${EXPOSED}`),
    listed(400, 'GET /api/x/envelope', `${EXPOSED}, Allow, X-Two`),
    listed(404, 'GET /api/absent', `${TYPE}, Cache-Control, ${EXPOSED}`),
    listed(404, 'GET /elsewhere', `${TYPE}, Cache-Control, ${EXPOSED}`),
    ...[undefined, '', ...UNLISTED.split(' ')].flatMap((origin) => [
      ...['/api/x', '/api/absent', '/elsewhere'].map((path) =>
        row(`GET ${path}`, ask(origin), { status: path === '/api/x' ? 200 : 404, vary: 'Origin' }),
      ),
      row('OPTIONS /api/x', [...ask(origin), ...asksFor('PUT', 'x-a')], PREFLIGHT),
    ]),
    row('GET /api/x', ['Transfer-Encoding: x', ...ask(LISTED)], { status: 400, vary: 'Origin' }),
  ],
};

/** Allows the origin of a tenant, whose name is in a header of the request. */
export const FUNCTION = `(origin, { headers }) => {
  globalThis.corsAsked?.(origin);
  if (origin === 'https://throws.example') throw new Error('x');
  if (origin === 'https://promise.example') return Promise.reject(new Error('x'));
  if (origin === 'https://one.example') return 1;
  if (origin === 'https://any.example' || origin === 'null' || origin === '*') return true;
  return origin === 'https://' + headers['x-tenant'] + '.example';
}`;
export const fileOf = (cors: string) => ({
  'service.mjs': `import { defineService } from '${GATEFOLD}';
    export default defineService({ authenticate: () => undefined, cors: { ${cors} } });`,
  'XController.mjs': 'export default class { index() { return {} } created() { return {} } }',
});

function functionRows(hasCredentials: boolean): CorsRow[] {
  const origins: readonly (readonly [origin: string, tenant: string, isAllowed: boolean])[] = [
    ['https://any.example', '', true],
    ['https://ann.example', 'ann', true],
    ['https://ann.example', 'bob', false],
    ['https://ann.example', 'ann', true],
    ['https://throws.example', '', false],
    ['https://promise.example', '', false],
    ['https://one.example', '', false],
    ['null', '', false],
    ['*', '', false],
    ['https://a.example, https://any.example', '', false],
  ];
  return origins.flatMap(([origin, tenant, isAllowed]) => {
    const lines = [...ask(origin), `X-Tenant: ${tenant}`];
    const allowed = isAllowed && { origin, ...(hasCredentials && { credentials: 'true' }) };
    const answer = { vary: 'Origin', ...allowed, ...(isAllowed && { 'expose-headers': 'X-Request-Id' }) };
    const preflight = { ...PREFLIGHT, ...allowed, ...(isAllowed && { methods: ALL_METHODS, 'max-age': '86400' }) };
    const page = [...lines, 'Cookie: a=1', 'Sec-Fetch-Site: cross-site'];
    return [
      row('GET /api/x', lines, { ...answer, status: 200 }),
      row('OPTIONS /api/x', lines, preflight),
      row('POST /api/x', page, { ...answer, status: isAllowed ? 200 : 403 }),
    ];
  });
}

/** The services of the table, by the rules of their service files. */
export const CORS_SERVICES: Readonly<Record<string, CorsService>> = {
  'no rules': OPEN_SERVICE,
  'a list of origins and credentials': LIST_SERVICE,
  'a function': { files: fileOf(`origins: ${FUNCTION}`), rows: functionRows(false) },
  'a function and credentials': { files: fileOf(`origins: ${FUNCTION}, credentials: true`), rows: functionRows(true) },
  'its own methods and names of headers': {
    files: fileOf("methods: ['GET', 'PATCH'], allowHeaders: ['X-A', 'X-B'], exposeHeaders: ['X-C', 'X-D'], maxAge: 0"),
    rows: [
      row('GET /api/x', ask(LISTED), { status: 200, origin: '*', 'expose-headers': 'X-C, X-D' }),
      row('GET /api/x', [], { status: 200, origin: '*', 'expose-headers': 'X-C, X-D' }),
      row('OPTIONS /api/x', [...ask(LISTED), ...asksFor('PUT', 'x-e')], {
        ...{
          status: 200,
          origin: '*',
          methods: 'GET, PATCH',
          headers: 'X-A, X-B',
          'max-age': '0',
          'content-length': '0',
        },
      }),
    ],
  },
  'empty lists of headers': {
    files: fileOf(`origins: ['${LISTED}'], allowHeaders: [], exposeHeaders: [], preflightStatus: 204`),
    rows: [
      row('GET /api/x', ask(LISTED), { status: 200, vary: 'Origin', origin: LISTED }),
      row('OPTIONS /api/x', [...ask(LISTED), ...asksFor('GET', 'x-a')], {
        ...{ status: 204, vary: 'Origin', origin: LISTED, methods: ALL_METHODS, 'max-age': '86400' },
      }),
    ],
  },
};

/** Sends the request of a row to a service on a port of this machine, and compares its answer. */
export async function check(port: number, { request, lines, body, answer }: CorsRow): Promise<void> {
  const head = [`${request} HTTP/1.1`, 'Host: a.test', 'Connection: close', `Content-Length: ${body.length}`, ...lines];
  const text = await sendRaw(port, `${head.join('\r\n')}\r\n\r\n${body}`, 9);
  const [statusLine = '', ...fields] = text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n');
  const found: Record<string, string | number> = { status: Number(statusLine.split(' ')[1]) };
  for (const field of fields) {
    const [name = ''] = field.toLowerCase().split(':');
    const isLength = request.startsWith('OPTIONS') && /^(?:content-length|transfer-encoding)$/.test(name);
    if (!isLength && name !== 'vary' && !name.startsWith('access-control-')) continue;
    const short = name.replace(/^access-control-(?:allow-)?/, '');
    // Two lines of one name are compared as one.
    found[short] = [found[short], field.slice(name.length + 1).trim()]
      .filter((value) => value !== undefined)
      .join(' | ');
  }
  assert.deepEqual(found, answer, [request, ...lines].join('\n'));
}
