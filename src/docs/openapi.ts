// The OpenAPI 3.1 document of a folder of groups, from what their sources and their `static operations` say. Pure:
// groups in, a document out, in which what is undefined is to be left out, as JSON does. One operation in it is
// operation-object.ts.
import { pageOf } from '../base/page-name.ts';
import { methodOf, namesOf } from '../base/route-name.ts';
import type { GroupContract } from '../contract/contract.ts';
import type { OperationSettings } from '../controller/operations.ts';
import type { GroupRoute } from '../groups/group-routes.ts';
import { createComponents } from './components.ts';
import { describeOperation, OWN_RESPONSES, OWN_SCHEMAS, type Place } from './operation-object.ts';

/** What the document reads of a handler group. */
export interface DocumentedGroup {
  /** `User` */
  readonly name: string;
  readonly operations: ReadonlyMap<string, DocumentedOperation>;
  /** A group with one is strict: a name takes POST alone. */
  readonly routes: readonly GroupRoute[];
  /** Undefined: its source was not read. */
  readonly contract?: GroupContract | undefined;
}

export interface DocumentedOperation {
  readonly name: string;
  readonly method: (...args: never[]) => unknown;
  readonly settings: OperationSettings;
}

export interface DocumentInfo {
  readonly title: string;
  readonly version: string;
  readonly description?: string | undefined;
}

export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: DocumentInfo;
  readonly tags: readonly object[];
  readonly paths: Readonly<Record<string, object>>;
  readonly [key: string]: unknown;
}

export function createDocument(groups: readonly DocumentedGroup[], info: DocumentInfo): OpenApiDocument {
  const ordered = groups
    .map((group) => ({ ...group, page: pageOf(group.name) }))
    .sort((a, b) => (a.page < b.page ? -1 : 1));
  const components = createComponents(Object.keys(OWN_SCHEMAS));
  const paths: Record<string, Record<string, object>> = {};
  const tags: object[] = [];
  const ids = new Set<string>();
  for (const { page, contract, operations, routes } of ordered) {
    const shown = inSourceOrder(operations, contract).filter(({ settings }) => settings.hidden !== true);
    if (shown.length === 0) continue;
    tags.push({ name: page, description: joined(contract?.summary, contract?.description) });
    const placeOf = createPlaces(page, routes);
    for (const operation of shown) {
      const place = placeOf(operation);
      const known = contract?.operations.get(operation.name);
      const described = describeOperation({
        operation,
        known,
        place,
        group: { page, defs: contract?.defs ?? {} },
        components,
      });
      const methods = paths[place.path] ?? {};
      methods[place.verb.toLowerCase()] = {
        operationId: unique(`${page}_${idOf(operation.name)}`, ids),
        tags: [page],
        ...described,
      };
      paths[place.path] = methods;
    }
  }
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: '/' }],
    // With a credential or without; an operation that needs one says so.
    security: [{}, { application: [] }],
    tags,
    paths,
    components: {
      schemas: { ...components.finish(), ...OWN_SCHEMAS },
      responses: OWN_RESPONSES,
      securitySchemes: {
        application: { type: 'http', scheme: 'bearer', description: 'The credential of a registered application' },
      },
    },
  };
}

function joined(summary: string | undefined, description: string | undefined): string | undefined {
  if (summary === undefined || description === undefined) return summary ?? description;
  return `${summary}${/[.!?:]$/.test(summary) ? '' : '.'} ${description}`;
}

function inSourceOrder(
  operations: DocumentedGroup['operations'],
  contract: GroupContract | undefined,
): DocumentedOperation[] {
  const order = new Map([...(contract?.operations.keys() ?? [])].map((name, i) => [name, i]));
  return [...operations.values()].sort((a, b) => (order.get(a.name) ?? 0) - (order.get(b.name) ?? 0));
}

function createPlaces(page: string, routes: readonly GroupRoute[]): (operation: DocumentedOperation) => Place {
  const bare = `/api/${page}`;
  const byName = new Map(routes.map((route) => [route.name, route]));
  const firstNames = new Map<string, readonly string[]>();
  return ({ name, method }) => {
    const route = byName.get(name);
    if (route === undefined) {
      const verb = methodOf(name);
      if (verb !== undefined) return { verb, path: bare, names: [] };
      return { verb: namedVerb(name, method, routes.length > 0), path: `${bare}/${name}`, names: [] };
    }
    const own = namesOf(route.segments);
    // Templates that differ in their names alone are one path (OpenAPI 3.1, Paths Object): the first one's names are
    // shown.
    const shape = route.segments.map(({ literal }) => literal ?? '{}').join('/');
    const shown = firstNames.get(shape) ?? own;
    firstNames.set(shape, shown);
    const names = own.map((one, i) => ({ own: one, shown: shown[i] ?? one }));
    let at = 0;
    const pieces = route.segments.map(({ literal }) => literal ?? `{${names[at++]?.shown}}`);
    return { verb: route.verb, path: [bare, ...pieces].join('/'), names };
  };
}

/** A group without routes answers any method; one that shows nothing is lost by it is written down. */
function namedVerb(name: string, method: (...args: never[]) => unknown, isStrict: boolean): string {
  if (isStrict) return 'POST';
  // The method whose permission a credential needs for it.
  if (name === 'updated') return 'PUT';
  return method.length === 0 ? 'GET' : 'POST';
}

/** `GET {id}/items` → `GET_by_id_items`: stable while the operation keeps its name. */
function idOf(name: string): string {
  return name
    .replaceAll(/\{(\w+)\*?\}/g, 'by_$1')
    .replaceAll(/\W+/g, '_')
    .replace(/_+$/, '');
}

function unique(id: string, taken: Set<string>): string {
  let found = id;
  for (let i = 2; taken.has(found); i++) found = `${id}_${i}`;
  taken.add(found);
  return found;
}
