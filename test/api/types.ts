// Compiled, never run: calls that the types of the client accept, and calls that they refuse. `npm run typecheck` fails
// when a line that should be refused compiles, and when any other line does not.
import { ApiError, createClient, isApiError, type ServerEvent } from '../../src/api/client.ts';
import { type ControllerParams, type EventStream, eventStream, Reply } from '../../src/api/controller.ts';

type Int = number;
type Params<Path, Query = Record<string, string | string[]>> = ControllerParams<{
  path: Path & object;
  query: Query & object;
}>;

interface Item {
  readonly book: string;
  readonly price: number;
}
interface Order {
  readonly id: Int;
  readonly placed: Date;
  readonly state: 'open' | 'paid';
  readonly note?: string;
  readonly items: readonly Item[];
  total(): number;
}
/** Any JSON value, as Supabase declares it. */
type Plain = string | number | boolean | null | { [key: string]: Plain | undefined } | Plain[];
interface NewOrder {
  items: Item[];
  due?: Date;
  state: 'open' | 'paid';
}

declare class OrderController {
  index(query: { page?: Int; state?: 'open' | 'paid' }): Promise<{ orders: Order[]; next: number | null }>;
  created(order: NewOrder): Order;
  red(_: unknown, params: Params<unknown, { dryRun?: boolean }>): void;
  deleted(): true;
  find(filter: { name: string }): Order | null;
  tag(_: unknown, params: ControllerParams): string;
  upload(form: { title: string; cover: File; pages?: File[] }): { size: number };
  raw(bytes: Blob): { size: number };
  list(tags: string[]): readonly string[];
  mark(data: { meta: Plain; days: readonly [Date, Date?] }): { meta: Plain; days: readonly [Date, Date?] };
  'GET {id}'(_: unknown, params: Params<{ id: Int }>): Promise<Order>;
  'GET {id}/items/{item}'(): Item;
  'GET {id}/lines'(query: { from: Int }, params: Params<{ id: Int }>): Item[];
  'PATCH {id}'(change: { note?: string }, params: Params<{ id: Int }, { notify?: boolean }>): Order;
  'POST {id}/pay'(payment: { amount: number }): Order;
  'GET files/{path*}'(): Blob;
  'GET export.csv'(): ReadableStream;
  PUT(order: NewOrder, params: Params<unknown, { dryRun?: boolean }>): Order;
  GET(query: { page?: Int }): Order[];
  'POST {id}/send'(): Reply<201, Order>;
  'DELETE {id}/items'(): Promise<Reply<204>>;
  'GET {id}/state'(): Order | Reply<304>;
  'GET old'(): Reply<number, undefined>;
  'GET events'(): EventStream<{ placed: Date }>;
  limit: number;
  _before(): void;
  private secret(): string;
  protected hidden(): string;
}
const inferred = {
  index: () => new Reply(201, { at: new Date(0) }, { Location: '/' }),
  created: () =>
    eventStream(
      (async function* () {
        yield { event: 'paid', data: { total: 7 } };
      })(),
    ),
};
declare const settings: { index(): { theme: 'light' | 'dark' }; created(value: string[]): unknown };

const api = createClient<{ order: typeof OrderController; settings: typeof settings; inferred: typeof inferred }>(
  'https://example.com',
  {
    authorization: async () => 'Bearer x',
    timeout: 5000,
  },
);

/** True when the two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function check<_ extends true>(): void {}

export async function good(): Promise<void> {
  const list = await api.order.index({ page: 1 });
  const first = list.orders[0];
  check<Same<typeof list.next, number | null>>();
  if (first !== undefined) check<Same<typeof first.placed, string>>();
  await api.order.index();
  await api.order.index(undefined, { signal: AbortSignal.timeout(5), timeout: 3 });
  const made = await api.order.created({ state: 'open', items: [{ book: 'a', price: 1 }], due: new Date() });
  check<Same<typeof made.state, 'open' | 'paid'>>();
  await api.order.created({ state: 'open', items: [], due: '2030-01-01T00:00:00Z' });
  const replaced = await api.order.red({ anything: 1 }, { query: { dryRun: true } });
  check<Same<typeof replaced.status, 'success'>>();
  check<Same<Awaited<ReturnType<typeof api.order.deleted>>['timestamp'], number>>();
  const found = await api.order.find({ name: 'x' }, { method: 'GET' });
  if ('items' in found) check<Same<typeof found.id, number>>();
  check<Same<Awaited<ReturnType<typeof api.order.tag>>, { data: string }>>();
  await api.order.tag(undefined, { slugs: ['a', 7] });
  await api.order.upload({ title: 'x', cover: new File([], 'x') });
  await api.order.upload(new FormData());
  await api.order.raw(new Blob([]));
  const tags: Parameters<typeof api.order.list>[0] = [];
  if ('push' in tags) tags.push('a');
  const listed = await api.order.list(tags);
  check<Same<typeof listed, readonly string[]>>();
  const marked = await api.order.mark({ meta: [{ a: [1, null] }], days: [new Date()] });
  check<Same<typeof marked.days, readonly [string, string?]>>();
  if (Array.isArray(marked.meta))
    await api.order.mark({ meta: marked.meta, days: ['2030-01-01T00:00:00Z', new Date()] });
  await api.order['GET {id}']({ path: { id: 7 } });
  await api.order['GET {id}/items/{item}']({ path: { id: 7, item: 'a' } });
  await api.order['GET {id}/lines']({ path: { id: 7 }, query: { from: 3 } });
  await api.order['PATCH {id}']({ path: { id: 7 }, body: { note: 'x' }, query: { notify: true } });
  await api.order['POST {id}/pay']({ path: { id: 7 }, body: { amount: 1 } });
  const put = await api.order.PUT({ body: { state: 'open', items: [] }, query: { dryRun: true } });
  check<Same<typeof put.placed, string>>();
  await api.order.GET({ query: { page: 2 } });
  await api.order.GET();
  const file = await api.order['GET files/{path*}']({ path: { path: ['a', 'b'] } });
  check<Same<typeof file, Blob>>();
  const csv: Blob = await api.order['GET export.csv']();
  const { headers } = await api.order['GET export.csv']().response;
  check<Same<Awaited<ReturnType<typeof api.settings.index>>['theme'], 'light' | 'dark'>>();
  check<Same<Awaited<ReturnType<typeof api.settings.created>>, unknown>>();
  check<Same<Awaited<ReturnType<(typeof api.order)['POST {id}/send']>>['placed'], string>>();
  check<Same<Awaited<ReturnType<(typeof api.order)['DELETE {id}/items']>>, undefined>>();
  check<Same<Awaited<ReturnType<(typeof api.order)['GET old']>>, undefined>>();
  for await (const { data, id } of await api.order['GET events']())
    check<Same<[typeof data.placed, typeof id], [string, string]>>();
  check<Same<Awaited<ReturnType<typeof api.inferred.index>>, { at: string }>>();
  for await (const { data } of await api.inferred.created()) check<Same<typeof data, { total: number }>>();
  const event: ServerEvent<number> = { event: 'message', id: '', data: 1 };
  void [csv, headers, event];
}

export async function bad(): Promise<void> {
  // @ts-expect-error a string is no page
  await api.order.index({ page: 'one' });
  // @ts-expect-error no such state
  await api.order.created({ state: 'lost', items: [] });
  // @ts-expect-error no items
  await api.order.created({ state: 'open' });
  // @ts-expect-error no data
  await api.order.created();
  // @ts-expect-error no such field
  await api.order.created({ state: 'open', items: [], colour: 'red' });
  // @ts-expect-error a price is a number
  await api.order.created({ state: 'open', items: [{ book: 'a', price: '1' }] });
  // @ts-expect-error JSON has no functions
  await api.order.mark({ meta: [() => 1], days: [new Date()] });
  // @ts-expect-error dryRun is a boolean
  await api.order.red({}, { query: { dryRun: 'yes' } });
  // @ts-expect-error no such option
  await api.order.red({}, { dryRun: true });
  // @ts-expect-error a Date comes as a text
  const when: Date = (await api.order.created({ state: 'open', items: [] })).placed;
  // @ts-expect-error a method does not come at all
  (await api.order.created({ state: 'open', items: [] })).total();
  // @ts-expect-error private
  api.order.secret();
  // @ts-expect-error protected
  api.order.hidden();
  // @ts-expect-error a guard
  api.order._before();
  // @ts-expect-error a field
  api.order.limit();
  // @ts-expect-error there is no patch
  api.order.patch({});
  // @ts-expect-error no such group
  api.orders.index();
  // @ts-expect-error a path is needed
  await api.order['GET {id}']();
  // @ts-expect-error the id is
  await api.order['GET {id}']({ path: {} });
  // @ts-expect-error an id is a number
  await api.order['GET {id}']({ path: { id: 'seven' } });
  // @ts-expect-error a GET has no body
  await api.order['GET {id}']({ path: { id: 7 }, body: {} });
  // @ts-expect-error `from` is needed
  await api.order['GET {id}/lines']({ path: { id: 7 } });
  // @ts-expect-error the body is needed
  await api.order['POST {id}/pay']({ path: { id: 7 } });
  // @ts-expect-error the body of PUT is needed
  await api.order.PUT();
  // @ts-expect-error its data is in the body
  await api.order.PUT({ state: 'open', items: [] });
  // @ts-expect-error a GET has no body
  await api.order.GET({ body: {} });
  // @ts-expect-error no such route
  await api.order['DELETE {id}']({ path: { id: 7 } });
  // @ts-expect-error a cover is a file
  await api.order.upload({ title: 'x', cover: 'x' });
  // @ts-expect-error the class is needed, not a word
  createClient<{ order: typeof OrderController }>('', { authorisation: 'x' });
  void when;
}

interface MyError {
  readonly errors: { readonly body: readonly string[] };
}

export function errors(error: unknown): void {
  if (isApiError<MyError>(error)) {
    check<Same<typeof error.body, MyError>>();
    check<Same<typeof error.body.errors.body, readonly string[]>>();
    check<Same<typeof error.status, number>>();
    check<Same<typeof error.requestId, string | undefined>>();
    // @ts-expect-error no such field in MyError
    error.body.message;
  }
  if (isApiError(error)) check<Same<typeof error.body, unknown>>();
  if (error instanceof ApiError) check<Same<typeof error.code, string>>();
  // @ts-expect-error the error is not narrowed yet
  error.body;
}
