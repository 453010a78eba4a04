// Requests of web pages of other origins (CSRF): who may call what changes something with the cookies or the password
// of a user. Each row is sent over a raw socket, because a client would add or refuse headers.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { connect } from 'node:tls';
import { createTlsServer } from '../../../src/operate/https/serve/tls-server.ts';
import { makeApplication } from '../../support/caller-table.ts';
import { GATEFOLD, parseRaw, type Service, startService } from '../../support/service.ts';
import { makePair } from '../../support/tls.ts';

const AUTHENTICATE = `authenticate: ({ cookies, authorization }) =>
  cookies.sid === undefined && !/^(?:Basic|Negotiate) /.test(authorization ?? '') ? undefined : { id: 'ann' }`;
const serviceFile = (options: string) => ({
  'service.ts': `import { defineService } from '${GATEFOLD}';\nexport default defineService({ ${options} });`,
});
/** Each operation returns its own name. */
const NAMES = ['index', 'created', 'red', 'patch', 'deleted', 'updated', 'options', 'publish'];
const groupOf = (names: readonly string[]) =>
  `export default class { ${names.map((name) => `'${name}'() { return { ran: '${name}' }; }`).join(' ')} }`;
const ORDER = { 'OrderController.mjs': groupOf(NAMES), 'NoteController.mjs': groupOf(['GET {id}', 'POST', 'publish']) };

const COOKIE = 'Cookie: sid=1';
const EVIL = 'Origin: https://evil.example';
const CROSS = 'Sec-Fetch-Site: cross-site';
const REFUSED = 'ORIGIN_NOT_ALLOWED';

/** The request, its headers besides Host, and the operation that runs or the code of the refusal. */
type Row = readonly [request: string, headers: readonly string[], outcome: string];

const SERVICES: Readonly<Record<string, { files: object; settings?: Record<string, string>; rows: readonly Row[] }>> = {
  'authenticate without cors': {
    files: { ...serviceFile(AUTHENTICATE), ...ORDER },
    rows: [
      // An image, a link or a frame sends no Origin.
      ['GET /api/order/deleted/7', [COOKIE, CROSS], REFUSED],
      ['GET /api/order/created?item=x', [COOKIE, CROSS], REFUSED],
      ['GET /api/order/publish', [COOKIE, CROSS], REFUSED],
      ['GET /api/order/red', [COOKIE, 'Sec-Fetch-Site: same-site'], REFUSED],
      ['GET /api/order/patch', [COOKIE, CROSS], REFUSED],
      ['GET /api/order/updated', [COOKIE, CROSS], REFUSED],
      ['HEAD /api/order/publish', [COOKIE, CROSS], '403'],
      ['OPTIONS /api/order/publish', ['Authorization: Basic YTpi', EVIL], REFUSED],
      // An operation that reads is never refused.
      ['GET /api/order', [COOKIE, EVIL, CROSS], 'index'],
      ['GET /api/order/index', [COOKIE, EVIL, CROSS], 'index'],
      ['POST /api/order/index', [COOKIE, EVIL, CROSS], 'index'],
      ['HEAD /api/order', [COOKIE, EVIL, CROSS], '200'],
      ['HEAD /api/order/index', [COOKIE, CROSS], '200'],
      ['GET /api/order/options', [COOKIE, CROSS], 'options'],
      ['GET /api/note/7', [COOKIE, EVIL, CROSS], 'GET {id}'],
      // Forms send Origin.
      ['POST /api/order', [COOKIE, EVIL, CROSS], REFUSED],
      ['POST /api/order', [COOKIE, EVIL], REFUSED],
      ['POST /api/order', [COOKIE, 'Origin: null'], REFUSED],
      ['POST /api/order', [COOKIE, 'Origin:'], REFUSED],
      ['POST /api/order', [COOKIE, CROSS], REFUSED],
      ['POST /api/order', [COOKIE, 'Sec-Fetch-Site:'], REFUSED],
      ['POST /api/order', [COOKIE, 'Sec-Fetch-Site: same-origin', CROSS], REFUSED],
      ['POST /api/order', ['Cookie:', EVIL], REFUSED],
      ['PUT /api/order', [COOKIE, EVIL], REFUSED],
      ['PATCH /api/order', [COOKIE, EVIL], REFUSED],
      ['DELETE /api/order', [COOKIE, EVIL], REFUSED],
      ['POST /api/note', [COOKIE, EVIL, CROSS], REFUSED],
      ['POST /api/note/publish', [COOKIE, EVIL, CROSS], REFUSED],
      ['POST /api/order', ['Authorization: Basic YTpi', EVIL], REFUSED],
      ['POST /api/order', ['Authorization: basic YTpi', CROSS], REFUSED],
      ['POST /api/order', ['Authorization: Negotiate YTpi', EVIL], REFUSED],
      ['POST /api/order', ['Authorization: NTLM YTpi', EVIL], REFUSED],
      ['POST /api/order', ['Authorization: Digest username="a"', EVIL], REFUSED],
      // A page of the service itself, a bookmark, and a page of the same host.
      ['POST /api/order', [COOKIE, 'Origin: null', 'Sec-Fetch-Site: same-origin'], 'created'],
      ['GET /api/order/publish', [COOKIE, 'Sec-Fetch-Site: same-origin'], 'publish'],
      ['GET /api/order/publish', [COOKIE, 'Sec-Fetch-Site: none'], 'publish'],
      ['POST /api/order', [COOKIE, 'Origin: http://own.example:8080'], 'created'],
      ['POST /api/order', [COOKIE, 'Origin: http://own.example:8081'], REFUSED],
      ['POST /api/order', [COOKIE, 'Origin: https://own.example:8080'], REFUSED],
      ['POST /api/order', [COOKIE, 'Host: own.example:80', 'Origin: http://own.example'], 'created'],
      ['POST /api/order', [COOKIE, 'Host: own.example:443', 'Origin: http://own.example'], REFUSED],
      // The browser knows better: a proxy speaks HTTPS, and the page came by HTTP.
      ['POST /api/order', [COOKIE, 'Origin: http://own.example:8080', CROSS], REFUSED],
      // Programs send neither header.
      ['POST /api/order', [COOKIE], 'created'],
      ['DELETE /api/order', [COOKIE], 'deleted'],
      ['GET /api/order/publish', [COOKIE], REFUSED],
      ['HEAD /api/order/publish', [COOKIE], '403'],
      ['GET /api/order/publish', ['Authorization: Basic YTpi'], REFUSED],
      // Nothing that a browser sends by itself.
      ['POST /api/order', [EVIL, CROSS], 'created'],
      ['GET /api/order/publish', [], 'publish'],
      ['POST /api/order', ['Authorization: Bearer foreign', EVIL], 'created'],
      ['POST /api/order', ['Authorization: Basically no password', EVIL], 'created'],
      ['POST /api/order', ['Authorization: Bearer foreign', COOKIE, EVIL], REFUSED],
      ['POST /api/order', ['Authorization: Bearer app', COOKIE, EVIL, CROSS], 'created'],
      ['GET /api/order/deleted', ['Authorization: Bearer app', COOKIE], 'deleted'],
      ['POST /api/order', ['Authorization: Bearer dead', COOKIE, EVIL], 'INVALID_CREDENTIAL'],
      // The operation is found first.
      ['POST /api/nothing', [COOKIE, EVIL], 'GROUP_NOT_FOUND'],
      // Sign-in and registration read no cookie of a user, and Google's page posts its form across sites.
      ['POST /api/idp-signin', [COOKIE, 'Origin: https://accounts.google.com', CROSS], '200'],
      ['POST /api/register', [COOKIE, EVIL, CROSS], '201'],
    ],
  },
  'cors with origins': {
    files: {
      ...serviceFile(`cors: { origins: ['https://app.example', 'https://*.b.example'] }, ${AUTHENTICATE}`),
      ...ORDER,
    },
    rows: [
      ['POST /api/order', [COOKIE, 'Origin: https://app.example', CROSS], 'created'],
      ['POST /api/order', [COOKIE, 'Origin: https://a.b.example', CROSS], 'created'],
      ['POST /api/order', [COOKIE, 'Origin: http://app.example', CROSS], REFUSED],
      ['POST /api/order', [COOKIE, EVIL, CROSS], REFUSED],
      ['GET /api/order/publish', [COOKIE, CROSS], REFUSED],
    ],
  },
  "cors with the origins '*'": {
    files: { ...serviceFile(`cors: { origins: '*' }, ${AUTHENTICATE}`), ...ORDER },
    rows: [
      ['POST /api/order', [COOKIE, EVIL, CROSS], REFUSED],
      ['POST /api/order', [COOKIE, 'Origin: *'], REFUSED],
      ['POST /api/order', [EVIL, CROSS], 'created'],
    ],
  },
  'cors with a function that allows every origin': {
    files: { ...serviceFile(`cors: { origins: () => true }, ${AUTHENTICATE}`), ...ORDER },
    rows: [
      ['POST /api/order', [COOKIE, EVIL, CROSS], REFUSED],
      ['POST /api/order', [EVIL, CROSS], 'created'],
    ],
  },
  'cors without origins': {
    files: { ...serviceFile(`cors: { maxAge: 600 }, ${AUTHENTICATE}`), ...ORDER },
    rows: [['POST /api/order', [COOKIE, EVIL, CROSS], REFUSED]],
  },
  'credentials, and no authenticate': {
    files: { ...serviceFile("cors: { origins: ['https://app.example'], credentials: true }"), ...ORDER },
    rows: [
      ['POST /api/order', [COOKIE, EVIL], REFUSED],
      ['POST /api/order', [COOKIE, 'Origin: https://app.example'], 'created'],
    ],
  },
  'an access function, and no authenticate': {
    files: {
      ...serviceFile('access: ({ cookies }) => cookies.sid !== undefined'),
      ...ORDER,
      'FreeController.mjs': `export default class { static operations = { '*': { access: 'anyone' } };
        created() { return { ran: 'created' }; } }`,
    },
    rows: [
      ['POST /api/order', [COOKIE, EVIL, CROSS], REFUSED],
      ['GET /api/order/deleted', [COOKIE], REFUSED],
      ['POST /api/order', [COOKIE, 'Sec-Fetch-Site: same-origin'], 'created'],
      ['GET /api/order', [COOKIE, EVIL, CROSS], 'index'],
      ['POST /api/order', ['Authorization: Bearer app', COOKIE, EVIL], 'created'],
      ['POST /api/free', [COOKIE, EVIL, CROSS], 'created'],
    ],
  },
  'an access function of an operation, and no service file': {
    files: {
      'OrderController.mjs': `export default class {
        static operations = { created: { access: ['anyone', ({ cookies }) => cookies.sid !== undefined] } };
        created() { return { ran: 'created' }; } publish() { return { ran: 'publish' }; } }`,
    },
    rows: [
      ['POST /api/order', [COOKIE, EVIL, CROSS], REFUSED],
      ['POST /api/order', [COOKIE], 'created'],
      ['POST /api/order/publish', [COOKIE, EVIL, CROSS], 'publish'],
    ],
  },
  'no authenticate': {
    files: { ...serviceFile('strict: false'), ...ORDER },
    rows: [['POST /api/order', [COOKIE, EVIL, CROSS], 'created']],
  },
  'no service file': { files: ORDER, rows: [['GET /api/order/deleted', [COOKIE, EVIL, CROSS], 'deleted']] },
  'strict, with folders': {
    files: {
      ...serviceFile(`strict: true, folders: true, ${AUTHENTICATE}`),
      'v2/OrderController.mjs': ORDER['OrderController.mjs'],
    },
    rows: [
      ['GET /api/v2/order', [COOKIE, CROSS], 'index'],
      ['POST /api/v2/order', [COOKIE, EVIL], REFUSED],
      ['POST /api/v2/order/publish', [COOKIE, EVIL], REFUSED],
      ['GET /api/v2/order/publish', [COOKIE, CROSS], 'METHOD_NOT_ALLOWED'],
    ],
  },
  'a key that has a header of its own': {
    files: { ...serviceFile(`keyHeader: 'X-Api-Key', ${AUTHENTICATE}`), ...ORDER },
    rows: [
      ['POST /api/order', ['X-Api-Key: app', COOKIE, EVIL], 'created'],
      ['POST /api/order', ['X-Api-Key: app', 'Authorization: Basic YTpi', EVIL], 'created'],
      ['POST /api/order', ['X-Api-Key: dead', COOKIE, EVIL], 'INVALID_CREDENTIAL'],
    ],
  },
  'PUBLIC_ORIGIN': {
    files: { ...serviceFile(AUTHENTICATE), ...ORDER },
    settings: { PUBLIC_ORIGIN: 'https://api.example,https://old.example' },
    rows: [
      ['POST /api/order', [COOKIE, 'Origin: https://api.example'], 'created'],
      ['POST /api/order', [COOKIE, 'Origin: https://old.example', CROSS], 'created'],
      ['POST /api/order', [COOKIE, 'Origin: https://old.example', 'Origin: https://evil.example'], REFUSED],
      ['POST /api/order', [COOKIE, 'Origin: http://api.example'], REFUSED],
      ['POST /api/order', [COOKIE, 'Origin: http://own.example:8080'], 'created'],
    ],
  },
};

for (const [title, { files, settings = {}, rows }] of Object.entries(SERVICES))
  describe(`a service with ${title}`, () => {
    let service: Service;
    before(async () => {
      const controllers = files as Readonly<Record<string, string>>;
      service = await startService({ controllers, settings, parts: { credentials: { identify: makeApplication } } });
    });
    after(() => service.close());

    for (const [request, headers, outcome] of rows)
      it(`answers ${outcome} to ${request} with ${headers.join(', ')}`, async () => {
        const lines = [
          `${request} HTTP/1.1`,
          ...(headers.some((line) => line.startsWith('Host:')) ? [] : ['Host: Own.example:8080']),
          'Connection: close',
          'Content-Length: 0',
          ...headers,
        ];
        const answer = parseRaw(await service.raw(`${lines.join('\r\n')}\r\n\r\n`));
        const { ran, error_code: code } = answer.body === '' ? {} : JSON.parse(answer.body);
        assert.equal(ran ?? code ?? String(answer.status), outcome);
        if (code === REFUSED) assert.equal(answer.status, 403);
      });
  });

it('no origin is that of a request without a Host', async (t) => {
  const service = await startService({ controllers: { ...serviceFile(AUTHENTICATE), ...ORDER } });
  t.after(() => service.close());
  const text = `POST /api/order HTTP/1.0\r\n${COOKIE}\r\nOrigin: http://\r\nContent-Length: 0\r\n\r\n`;
  assert.equal(parseRaw(await service.raw(text)).status, 403);
});

it('with TLS in this process, only the origin of https is that of the service', async (t) => {
  const transport = createTlsServer({ handshakeTimeout: 60_000, maxConnections: 100, plainRefusal: () => '' });
  transport.use({ ...makePair('own.example'), ticketKeys: [], challenge: undefined });
  const service = await startService({ controllers: { ...serviceFile(AUTHENTICATE), ...ORDER }, parts: { transport } });
  t.after(() => service.close());
  for (const [host, origin, status] of [
    ['own.example', 'https://own.example', 200],
    ['own.example:443', 'https://own.example', 200],
    ['own.example', 'http://own.example', 403],
    ['own.example:80', 'https://own.example', 403],
  ] as const) {
    const socket = connect({ port: service.port, host: '127.0.0.1', rejectUnauthorized: false }).setEncoding('utf8');
    const headers = `Host: ${host}\r\nOrigin: ${origin}\r\n${COOKIE}\r\nContent-Length: 0\r\nConnection: close`;
    socket.write(`POST /api/order HTTP/1.1\r\n${headers}\r\n\r\n`);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    await once(socket, 'close');
    assert.equal(parseRaw(text).status, status, `${host} ${origin}`);
  }
});

it('a refused GET says to use POST, and a refused page says to list its origin', async (t) => {
  const service = await startService({ controllers: { ...serviceFile(AUTHENTICATE), ...ORDER } });
  t.after(() => service.close());
  const ask = async (headers: string) =>
    JSON.parse(parseRaw(await service.raw(`GET /api/order/deleted HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n`)).body)
      .message;
  assert.match(await ask(COOKIE), /^GET may not .* use POST$/);
  assert.match(await ask(`${COOKIE}\r\n${EVIL}`), /list it in cors$/);
});
