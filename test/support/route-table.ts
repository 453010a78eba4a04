// Requests to groups with routes and without, each with its answer. The table is run in one process
// (request/routes.test.ts) and over workers (slow/routes.slow.ts).

const ECHO = '(data, { method, path, slugs }) { return { method, path, slugs } }';
/** The operation that a verb has without routes, by docs/REFERENCE.md. */
export const VERB_NAMES = {
  GET: 'index',
  HEAD: 'index',
  POST: 'created',
  PUT: 'red',
  PATCH: 'patch',
  DELETE: 'deleted',
  OPTIONS: 'options',
};

export const CONTROLLERS: Readonly<Record<string, string>> = {
  'OrderController.mjs': `class Base {
      'GET {id}/history'${ECHO}
      created${ECHO}
      helper${ECHO}
    }
    export default class extends Base {
      index${ECHO}
      pay${ECHO}
      updated${ECHO}
      'GET export.csv'${ECHO}
      'GET {id}'${ECHO}
      'PATCH {id}'${ECHO}
      'GET {id}/items/{item}'${ECHO}
      'POST {id}/pay'${ECHO}
      'GET files/{path*}'${ECHO}
    }`,
  'PlainController.mjs': `export default { index${ECHO}, created${ECHO}, pay${ECHO} }`,
  'UserController.mjs': `class Base { 'DELETE'${ECHO} helper${ECHO} }
    export default class extends Base {
      GET${ECHO} 'POST'${ECHO} 'PUT'${ECHO} 'PATCH'${ECHO} 'OPTIONS'${ECHO} pay${ECHO}
    }`,
  'ReadController.mjs': `export default { 'GET'${ECHO} }`,
  'BelowController.mjs': `export default { 'GET {id}'${ECHO} }`,
  'MixedController.mjs': `export default { index${ECHO}, created${ECHO}, 'PUT'${ECHO}, 'POST {id}'${ECHO}, updated${ECHO} }`,
  'HeadController.mjs': `export default { 'GET'${ECHO}, 'HEAD'() { throw new Error('HEAD was called') } }`,
  'OrderedController.mjs': `class Base { 'GET {id}'${ECHO} 'GET lit/b'${ECHO} }
    export default class extends Base {
      'GET {all*}'${ECHO} 'GET {x}/{y}'${ECHO} 'GET lit'${ECHO} 'HEAD {id}'() { throw new Error('HEAD {id}') }
      'HEAD {id}/only'() { throw new Error('HEAD {id}/only') }
      'POST {id}'${ECHO} 'POST pay/{id}/x'${ECHO} 'POST lit'${ECHO} find${ECHO}
    }`,
  'OverrideController.mjs': `class Base { 'GET {id}'() {} 'PUT'() {} }
    export default class extends Base { 'GET {id}'${ECHO} 'PUT'${ECHO} }`,
};

/**
 * `answer` is the method of a 200 with the captured segments of its path, or the status and the code of a refusal. The
 * body of an answer to HEAD is not there, so it is the status alone. `allow` is the header of a 405.
 */
export interface RouteRow {
  readonly verb: string;
  readonly path: string;
  readonly answer: string;
  readonly allow?: string | undefined;
  /** The name of a key, whose rights routes.test.ts has. */
  readonly key?: string;
}

type Row = readonly [request: string, answer: string, allow?: string];

const ROWS: readonly Row[] = [
  // A group with routes.
  ['GET /api/order', 'index'],
  ['POST /api/order', 'created'],
  ['POST /api/order/pay', 'pay'],
  ['POST /api/order/pay/7', 'pay'],
  ['POST /api/order/updated', 'updated'],
  ['GET /api/order/pay', 'GET {id} id=pay'],
  ['GET /api/order/created', 'GET {id} id=created'],
  ['GET /api/order/constructor', 'GET {id} id=constructor'],
  ['PATCH /api/order/updated', 'PATCH {id} id=updated'],
  ['GET /api/order/export.csv', 'GET export.csv'],
  ['GET /api/order/EXPORT.csv', 'GET {id} id=EXPORT.csv'],
  ['HEAD /api/order/7', '200'],
  ['GET /api/order/7/items/3', 'GET {id}/items/{item} id=7 item=3'],
  ['GET /api/order/7//items/3/', 'GET {id}/items/{item} id=7 item=3'],
  ['GET /api/order/7/items/a%2Fb', 'GET {id}/items/{item} id=7 item=a/b'],
  ['GET /api/order/%37%2f8', 'GET {id} id=7/8'],
  ['GET /api/order/GET%20%7Bid%7D', 'GET {id} id=GET {id}'],
  ['POST /api/order/7/pay', 'POST {id}/pay id=7'],
  ['GET /api/order/7/history', 'GET {id}/history id=7'],
  ['GET /api/order/files', 'GET {id} id=files'],
  ['GET /api/order/files/a', 'GET files/{path*} path=a'],
  ['GET /api/order/files/a/b%2Fc', 'GET files/{path*} path=a/b/c'],
  ['GET /api/order%2F7', 'GET {id} id=7'],
  ['GET /api/order/7/items', '404 ROUTE_NOT_FOUND'],
  ['GET /api/order/7/nothing', '404 ROUTE_NOT_FOUND'],
  ['DELETE /api/order/7/items/3/4', '404 ROUTE_NOT_FOUND'],
  ['POST /api/order/created', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH, OPTIONS'],
  ['POST /api/order/GET%20%7Bid%7D', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH, OPTIONS'],
  ['DELETE /api/order/7', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH, OPTIONS'],
  ['DELETE /api/order/pay', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, POST, PATCH, OPTIONS'],
  ['GET /api/order/7/pay', '405 METHOD_NOT_ALLOWED', 'POST, OPTIONS'],
  ['DELETE /api/order', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, POST, OPTIONS'],
  ['PROPFIND /api/order', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, POST, OPTIONS'],
  ['PROPFIND /api/order/7', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH, OPTIONS'],
  ['POST /api/order/helper', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH, OPTIONS'],
  // A group without routes runs the operation that the URL names, whatever the verb is.
  ['GET /api/plain/pay', 'pay'],
  ['GET /api/plain/created', 'created'],
  ['DELETE /api/plain/pay/7', 'pay'],
  ['GET /api/plain/7/items', 'index'],
  // Methods such as `'PUT'(…)` without a pattern are routes of the bare group.
  ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((verb): Row => [`${verb} /api/user`, verb]),
  ['OPTIONS /api/user', '200'],
  ['POST /api/user/pay', 'pay'],
  ['HEAD /api/user', '200'],
  ['HEAD /api/head', '500'],
  ['POST /api/user/PUT', '404 ROUTE_NOT_FOUND'],
  ['PUT /api/user/PUT', '404 ROUTE_NOT_FOUND'],
  ['GET /api/user/GET', '404 ROUTE_NOT_FOUND'],
  ['POST /api/user/DELETE', '404 ROUTE_NOT_FOUND'],
  ['POST /api/user%2FPUT', '404 ROUTE_NOT_FOUND'],
  ['POST /api/user/PUT%20', '404 ROUTE_NOT_FOUND'],
  ['POST /api/user/%20', '404 ROUTE_NOT_FOUND'],
  ['POST /api/user/helper', '404 ROUTE_NOT_FOUND'],
  ['GET /api/user/pay', '405 METHOD_NOT_ALLOWED', 'POST, OPTIONS'],
  ['PROPFIND /api/user', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
  ['GET /api/below', '405 METHOD_NOT_ALLOWED', 'OPTIONS'],
  ['POST /api/read', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, OPTIONS'],
  // Beside operations of the verb table and operations that the URL names.
  ['GET /api/mixed', 'index'],
  ['PUT /api/mixed', 'PUT'],
  ['POST /api/mixed', 'created'],
  ['POST /api/mixed/updated', 'updated'],
  ['POST /api/mixed/PUT', 'POST {id} id=PUT'],
  ['DELETE /api/mixed', '405 METHOD_NOT_ALLOWED', 'GET, HEAD, POST, PUT, OPTIONS'],
  ['POST /api/mixed/PUT/x', '404 ROUTE_NOT_FOUND'],
  // The most literal route is chosen, own or inherited. It takes HEAD, unless a route for HEAD is as literal.
  ['GET /api/ordered/lit', 'GET lit'],
  ['HEAD /api/ordered/lit', '200'],
  ['GET /api/ordered/7', 'GET {id} id=7'],
  ['HEAD /api/ordered/7', '500'],
  ['HEAD /api/ordered/lit/b', '200'],
  ['HEAD /api/ordered/7/only', '500'],
  ['GET /api/ordered/7/only', 'GET {x}/{y} x=7 y=only'],
  ['GET /api/ordered/lit/b', 'GET lit/b'],
  ['GET /api/ordered/lit/c', 'GET {x}/{y} x=lit y=c'],
  ['GET /api/ordered/a/b/c', 'GET {all*} all=a/b/c'],
  ['POST /api/ordered/find', 'find'],
  ['POST /api/ordered/find/7', 'find'],
  ['POST /api/ordered/lit', 'POST lit'],
  ['POST /api/ordered/7', 'POST {id} id=7'],
  ['GET /api/override/7', 'GET {id} id=7'],
  ['PUT /api/override', 'PUT'],
];

/** Rows with a key: a key without HEAD calls GET, and one with a handler calls its group by any URL. */
const KEY_ROWS: readonly (readonly [key: string, request: string, answer: string])[] = [
  ['foreign', 'OPTIONS /api/user', 'OPTIONS'],
  ['foreign', 'POST /api/user/PUT', '404 ROUTE_NOT_FOUND'],
  ['reader', 'GET /api/user', 'GET'],
  ['reader', 'PUT /api/user', '405 METHOD_NOT_ALLOWED'],
  ['reader', 'POST /api/user/PUT', '405 METHOD_NOT_ALLOWED'],
  ['header', 'GET /api/user', '405 METHOD_NOT_ALLOWED'],
  ['header', 'HEAD /api/user', '200'],
  ['header', 'HEAD /api/mixed', '200'],
  ['header', 'HEAD /api/head', '500'],
  ['writer', 'PUT /api/user', 'PUT'],
  ['writer', 'GET /api/user', '405 METHOD_NOT_ALLOWED'],
  ['sdk', 'PUT /api/anything', 'PUT'],
  ['sdk', 'PUT /api', 'PUT'],
  ['sdk', 'POST /api/PUT', 'POST'],
  ['sdk', 'POST /api/pay', 'pay'],
  ['sdk', 'PUT /api/x/PUT', '404 ROUTE_NOT_FOUND'],
  ['sdk', 'DELETE /api/user', '405 METHOD_NOT_ALLOWED'],
];

function split(request: string) {
  const [verb = '', path = ''] = request.split(' ');
  return { verb, path };
}

export const ROUTE_ROWS: readonly RouteRow[] = [
  ...ROWS.map(([request, answer, allow]) => ({ ...split(request), answer, allow })),
  ...KEY_ROWS.map(([key, request, answer]) => ({ ...split(request), answer, key })),
];

/** Sends the request of a row. @returns the answer in the form of the table */
export async function ask(url: string, { verb, path, key }: RouteRow): Promise<Pick<RouteRow, 'answer' | 'allow'>> {
  const response = await fetch(url + path, { method: verb, ...(key && { headers: { authorization: key } }) });
  const text = await response.text();
  const { method, path: captured = {}, error_code: code } = text === '' ? {} : JSON.parse(text);
  const segments = Object.entries(captured).map(([name, value]) => ` ${name}=${value}`);
  return {
    answer: method === undefined ? [response.status, code].filter(Boolean).join(' ') : method + segments.join(''),
    allow: response.headers.get('allow') ?? undefined,
  };
}
