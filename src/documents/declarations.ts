// Writes the types of all operations for a front end that lacks the source of the controllers: one TypeScript file
// without any import. A front end calls `createClient<Api>(url)`, where `Api` is an interface of the file.
import { idOfGroup, isRoot, ROOT_ID, urlNameOf } from '../base/group-name.ts';
import { sortedBy } from '../base/sorted-by.ts';
import type { OperationContract, ResultContract, Schema } from '../contract/contract.ts';
import { NO_RESULT_TYPE } from '../contract/results.ts';
import { findAmbiguousNames } from './components.ts';
import type { DocumentedGroup, DocumentedOperation } from './documented.ts';
import { docComment, type NameOf, propertyName, typeText } from './type-text.ts';

export type Declarations = Readonly<ReturnType<typeof writeDeclarations>>;

const HEAD = `// Declarations of the service's operations. \`gatefold types\` makes this file: do not edit it.
//
//   import { createClient } from 'gatefold/client';
//   const api = createClient<Api>`;

/** Result types that `gatefold/client` distinguishes. The file has only those that its operations use. */
const RESULT_TYPES: Readonly<Record<string, string>> = {
  Reply: `
/** A result with a status of its own. */
interface Reply<Status extends number, Body> {
  readonly status: Status;
  readonly body: Body | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[]>> | undefined;
}
`,
  EventStream: `
/** A stream of server-sent events. */
interface EventStream<Data> {
  readonly source: AsyncIterable<
    { readonly data: Data; readonly event?: string; readonly id?: string; readonly retry?: number } | Data
  >;
  readonly options: { readonly retry?: number };
}
`,
};

/** Names that the file or the language uses in another meaning. A schema of a library can have any name. */
const RESERVED_NAMES = new Set(
  `Api Reply EventStream Date File Blob Record Readonly AsyncIterable any unknown never object string number boolean
  symbol bigint undefined void null true false break case catch class const continue debugger default delete do else
  enum export extends finally for function if import in instanceof new return super switch this throw try typeof var
  while with implements interface let package private protected public static yield await
  as infer keyof readonly unique`.split(/\s+/),
);

export function writeDeclarations(groups: readonly DocumentedGroup[], url: string) {
  const sortedGroups = sortedBy(groups, ({ name }) => name);
  const names = nameTypes(sortedGroups);
  /** Key: a name in the file. Only the types that an operation refers to are written. */
  const usedTypes = new Map<string, { readonly group: DocumentedGroup; readonly schema: Schema }>();
  /** The operations whose result type is unknown, each with the reason. */
  const untypedOperations: string[] = [];
  /** The returned function also adds the type to `usedTypes`. */
  const createNameOf =
    (group: DocumentedGroup): NameOf =>
    (reference) => {
      const name = reference.slice('#/$defs/'.length);
      const uniqueName = names.get(keyOf(group.name, name)) as string;
      if (!usedTypes.has(uniqueName)) usedTypes.set(uniqueName, { group, schema: group.contract.defs[name] as Schema });
      return uniqueName;
    };
  const interfaces = sortedGroups.map((group) => {
    const nameOf = createNameOf(group);
    const members = Array.from(group.operations.values(), (operation) => {
      const contract = group.contract.operations.get(operation.name) as OperationContract;
      const reason = whyResultUnknown(contract);
      if (reason !== undefined) untypedOperations.push(`${urlNameOf(group.name)} ${operation.name}: ${reason}`);
      return writeOperation(operation, contract, nameOf);
    });
    const doc = docComment({ ...group.contract }, '  ');
    return `${doc}  ${propertyName(nameInClient(group.name))}: {\n${members.join('')}  };\n`;
  });
  // `writeType` can add a type to the map. The loop also visits such a type.
  const types: string[] = [];
  for (const [name, { group, schema }] of usedTypes) types.push(writeType(name, schema, createNameOf(group)));
  const body = `\nexport interface Api {\n${interfaces.join('')}}\n${types.join('')}`;
  const results = Object.entries(RESULT_TYPES).map(([name, text]) => (body.includes(`${name}<`) ? text : ''));
  return { text: `${HEAD}('${url}');\n${results.join('')}${body}`, untypedOperations };
}

/** Returns the name of a group in the client, where `root` is the root group, and `Root` a group of that name. */
function nameInClient(group: string): string {
  if (isRoot(group)) return idOfGroup(group);
  const urlName = urlNameOf(group);
  return ROOT_ID.test(urlName) ? group : urlName;
}

/** @returns undefined when the type of at least one result is known */
function whyResultUnknown(contract: OperationContract): string | undefined {
  if (contract.undocumentedReason !== undefined) return contract.undocumentedReason;
  const isUnknown = contract.results.every(({ body, schema, returnedSchema, mayBeAbsent }) => {
    return body === 'json' && schema === undefined && returnedSchema === undefined && mayBeAbsent !== true;
  });
  return isUnknown ? NO_RESULT_TYPE : undefined;
}

const keyOf = (group: string, name: string) => `${group} ${name}`;

/**
 * Gives each type a name that is unique in the file. Equal types of two groups have one name, `Book`. Different types
 * become `OrderBook` and `ShopBook`.
 *
 * @returns the names. Key: the group and the type, such as `Order Book`.
 */
function nameTypes(groups: readonly DocumentedGroup[]): ReadonlyMap<string, string> {
  const types = groups.flatMap(({ name: group, contract }) =>
    Object.entries(contract.defs).map(([name, schema]) => ({ group, name, text: JSON.stringify(schema) })),
  );
  const ambiguousNames = findAmbiguousNames(types, RESERVED_NAMES);
  const names = new Map<string, string>();
  /** Key: a name in the file. Value: `Book` for a type that groups share, or `Order Book` for a type of one group. */
  const owners = new Map<string, string>();
  for (const { group, name } of types) {
    const isAmbiguous = ambiguousNames.has(name);
    const owner = isAmbiguous ? keyOf(group, name) : name;
    // Other characters are not allowed in an identifier, nor is a digit at its beginning.
    const wantedName = `${isAmbiguous ? group : ''}${name}`.replaceAll(/[^\w$]/g, '_').replace(/^(?=\d)/, '_');
    let uniqueName = wantedName;
    for (let i = 2; RESERVED_NAMES.has(uniqueName) || (owners.get(uniqueName) ?? owner) !== owner; i++)
      uniqueName = `${wantedName}${i}`;
    owners.set(uniqueName, owner);
    names.set(keyOf(group, name), uniqueName);
  }
  return names;
}

function writeType(name: string, schema: Schema, nameOf: NameOf): string {
  const type = typeText(schema, nameOf);
  // The text of a union of objects, too, begins with a brace.
  const isPlain = schema.type === 'object' && schema.additionalProperties === undefined && !schema.patternProperties;
  const isObject = isPlain && type.startsWith('{\n');
  const declaration = isObject ? `export interface ${name} ${type}` : `export type ${name} = ${type};`;
  return `\n${docComment(schema, '')}${declaration}\n`;
}

function writeOperation(operation: DocumentedOperation, contract: OperationContract, nameOf: NameOf): string {
  const { name, method: controllerMethod, settings } = operation;
  const indent = '      ';
  const params = (['path', 'query', 'headers'] as const).flatMap((part) => {
    const schema = contract[part];
    return schema === undefined ? [] : [`${part}: ${typeText(schema, nameOf, `${indent}  `)}`];
  });
  const data = writeData(contract, settings.body === 'stream', nameOf, indent);
  // A method without parameters takes no data. But `params` comes second, so it needs `data` before it.
  const takesData = controllerMethod.length > 0 || data !== 'data: unknown' || params.length > 0;
  const args = [...(takesData ? [data] : []), ...(params.length === 0 ? [] : [`params: { ${params.join('; ')} }`])];
  const results = contract.results.map((result) => writeResult(result, nameOf, indent));
  const { summary, description, isDeprecated: deprecated } = contract;
  const doc = docComment({ summary: settings.summary ?? summary, description, deprecated }, '    ');
  return `${doc}    ${propertyName(name)}(${args.join(', ')}): ${[...new Set(results)].join(' | ')};\n`;
}

function writeData(contract: OperationContract, isStream: boolean, nameOf: NameOf, indent: string): string {
  const { data, dataIsOptional } = contract;
  if (isStream) return 'data: Blob';
  if (data === undefined) return 'data: unknown';
  return `data${dataIsOptional ? '?' : ''}: ${typeText(data, nameOf, indent)}`;
}

function writeResult(result: ResultContract, nameOf: NameOf, indent: string): string {
  const { status, body, schema, returnedSchema = schema, isReplyWithBody, mayBeAbsent, mayBeSuccessMessage } = result;
  if (body === 'none') return `Reply<${status}, undefined>`;
  const parts = [
    ...(returnedSchema === undefined ? [] : [typeText(returnedSchema, nameOf, indent)]),
    ...(mayBeAbsent ? ['undefined'] : []),
    // The schema of a library is that of the answer, without the success message. A client reads null as this message.
    ...(returnedSchema === schema && mayBeSuccessMessage ? ['null'] : []),
  ];
  if (parts.length === 0) parts.push('unknown');
  const types = body === 'bytes' ? ['Blob'] : body === 'events' ? [`EventStream<${parts.join(' | ')}>`] : parts;
  // `T | undefined` becomes `Reply<200, T> | Reply<200, undefined>`. From `Reply<200, T | undefined>`, TypeScript would
  // infer only `T`, because the field `body` is declared as `Body | undefined`.
  return (isReplyWithBody ? types.map((type) => `Reply<${status}, ${type}>`) : types).join(' | ');
}
