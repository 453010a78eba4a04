// Creates the OpenAPI 3.1 document from the contracts and settings of all groups. Fields of the document can be
// undefined: `JSON.stringify` leaves them out.
import { idOfGroup, pathOfGroup, urlNameOf } from '../base/group-name.ts';
import { ANY_VERB, methodOf, namesOf, operationIdOf, type Segment } from '../base/route-name.ts';
import { sortedBy } from '../base/sorted-by.ts';
import type { OperationContract } from '../contract/contract.ts';
import type { GroupRoute } from '../groups/group-routes.ts';
import { createAccessWriter } from './access.ts';
import { createComponents } from './components.ts';
import type { DocumentedGroup, DocumentedOperation, DocumentedService, DocumentInfo } from './documented.ts';
import { describeOperation, type Endpoint } from './operation-object.ts';
import { ENVELOPE_SCHEMAS, writeRefusals } from './refusals.ts';

export type OpenApiDocument = ReturnType<typeof createDocument>;

/**
 * With the default base path, each path of the document begins with `/api`: clients that were generated before the
 * setting BASE_PATH existed rely on that. Any other base path is in `servers`, and the paths begin after it.
 *
 * @param service undefined when there is no service file
 */
export function createDocument(
  groups: readonly DocumentedGroup[],
  info: DocumentInfo,
  basePath = '/api',
  service?: DocumentedService | undefined,
) {
  const [server, prefix] = basePath === '/api' ? ['/', '/api'] : [basePath || '/', ''];
  const sortedGroups = sortedBy(
    groups.map((group) => ({ ...group, groupInUrl: urlNameOf(group.name) })),
    ({ groupInUrl }) => groupInUrl,
  );
  const components = createComponents(service?.formatError === undefined ? Object.keys(ENVELOPE_SCHEMAS) : []);
  const access = createAccessWriter(service);
  const refusals = writeRefusals(service, components);
  const paths: Record<string, Record<string, { operationId: string; [key: string]: unknown }>> = {};
  const tags: object[] = [];
  const ids = new Set<string>();
  for (const { groupInUrl, contract, operations, routes, strictRoutes } of sortedGroups) {
    const inSourceOrder = Array.from(contract.operations.keys(), (name) => operations.get(name) as DocumentedOperation);
    const visibleOperations = inSourceOrder.filter(({ settings }) => settings.hidden !== true);
    if (visibleOperations.length === 0) continue;
    tags.push({ name: groupInUrl, description: joinTexts(contract.summary, contract.description) });
    // In a strict group, an operation without a route is called only with POST. A group that has a route is strict.
    const endpointOf = createEndpointFinder(pathOfGroup(prefix, groupInUrl), routes, strictRoutes !== undefined);
    for (const operation of visibleOperations) {
      const endpoint = endpointOf(operation);
      const group = { groupInUrl: idOfGroup(groupInUrl), defs: contract.defs };
      const operationContract = contract.operations.get(operation.name) as OperationContract;
      const parts = { operation, contract: operationContract, endpoint, group, components, access };
      const operationId = reserveId(`${idOfGroup(groupInUrl)}_${operationIdOf(operation.name)}`, ids);
      const operationsByVerb = paths[endpoint.path] ?? {};
      // OpenAPI has no key for all methods, so the key is an extension.
      const verb = endpoint.verb.toLowerCase();
      const key = endpoint.verb === ANY_VERB ? 'x-any' : verb;
      const described = { operationId, tags: [groupInUrl], ...describeOperation(parts) };
      const other = operationsByVerb[key];
      operationsByVerb[key] = endpoint.hasRest ? (other ?? described) : described;
      // In OpenAPI, `{id}` and `{path*}` are the same path. So one of two such routes has a key that is an extension.
      if (other !== undefined) operationsByVerb[`x-${verb}-rest`] = endpoint.hasRest ? described : other;
      paths[endpoint.path] = operationsByVerb;
    }
  }
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: server }],
    // An operation that needs a credential has requirements of its own, which replace these.
    security: access.openRequirements,
    tags,
    paths,
    components: {
      schemas: { ...components.finish(), ...refusals.schemas },
      responses: refusals.responses,
      securitySchemes: access.schemes,
    },
  };
}

function joinTexts(summary: string | undefined, description: string | undefined): string | undefined {
  if (summary === undefined || description === undefined) return summary ?? description;
  return `${summary}${/[.!?:]$/.test(summary) ? '' : '.'} ${description}`;
}

function createEndpointFinder(groupPath: string, routes: readonly GroupRoute[], isStrict: boolean) {
  const routesByName = new Map(routes.map((route) => [route.name, route]));
  /** Key: a path without names, such as `{}/items`. Value: the names in the first route with this path. */
  const namesByPathShape = new Map<string, readonly string[]>();
  return ({ name, method }: DocumentedOperation): Endpoint => {
    const route = routesByName.get(name);
    if (route === undefined) {
      const verb = methodOf(name);
      if (verb !== undefined) return { verb, path: groupPath || '/', names: [] };
      return { verb: verbForName(name, method, isStrict), path: `${groupPath}/${name}`, names: [] };
    }
    const declaredNames = namesOf(route.segments);
    // In OpenAPI 3.1 (Paths Object), `/{id}` and `/{name}` are the same path. So both get the names of the first route.
    const shapeOf = (segment: Segment, name = '') => segment.literal ?? `{${name}}${segment.suffix}`;
    const pathShape = route.segments.map((segment) => shapeOf(segment)).join('/');
    const shownNames = namesByPathShape.get(pathShape) ?? declaredNames;
    namesByPathShape.set(pathShape, shownNames);
    const names = declaredNames.map((declaredName, i) => ({ declaredName, shownName: shownNames[i] ?? declaredName }));
    let capturedCount = 0;
    const segments = route.segments.map((segment) =>
      shapeOf(segment, segment.literal === undefined ? names[capturedCount++]?.shownName : ''),
    );
    const hasRest = route.segments.some((segment) => segment.literal === undefined && segment.isRest);
    return { verb: route.verb, path: [groupPath, ...segments].join('/') || '/', names, hasRest };
  };
}

/** Chooses the verb that the document shows for an operation such as `publish`, which answers several verbs. */
function verbForName(name: string, method: (...args: never[]) => unknown, isStrict: boolean): string {
  if (isStrict) return 'POST';
  // The reference ties the name `updated` to the permission for PUT, whatever the verb, unless the group is strict.
  if (name === 'updated') return 'PUT';
  return method.length === 0 ? 'GET' : 'POST';
}

/** Returns `name`, or `name_2` when `name` is in use, and so on. Adds the result to `ids`. */
function reserveId(name: string, ids: Set<string>): string {
  let id = name;
  for (let i = 2; ids.has(id); i++) id = `${name}_${i}`;
  ids.add(id);
  return id;
}
