// Types that a library infers from a schema: `z.infer<typeof NewUser>`. Such a type has lost the constraints of its
// schema, so it is not read. The schema itself becomes the check, and this file finds where the author's code has it.
// The shape of such a type fails when it is resolved. So a type that is only made of it, such as `Partial`, is refused.
import { Unsupported } from '../source/source-error.ts';
import type { NameNode } from '../source/syntax.ts';
import { findValue, NO_TYPE_PARAMS, type PackageType, type Scope } from './look-up.ts';
import { type Fail, failingShape, type SchemaReference, type Shape } from './shape.ts';

/**
 * The packages, the vendor (SchemaReference), and the last part of the names of two types: what the operation gets, as
 * `infer` in `z.infer`, and what the client sends.
 */
const LIBRARIES: readonly (readonly [packages: RegExp, vendor: string, outputs: RegExp, inputs: RegExp])[] = [
  [/^(?:zod|@hono\/zod-openapi)(?:\/|$)/, 'zod', /^(?:infer|output|TypeOf)$/, /^input$/],
  [/^valibot$/, 'valibot', /^InferOutput$/, /^InferInput$/],
  [/^effect(?:\/|$)/, 'effect', /^Type$/, /^Encoded$/],
  [/^yup$/, 'yup', /^InferType$/, /^$/],
  [/^@standard-schema\/spec$/, 'any', /^InferOutput$/, /^InferInput$/],
  [/^(?:@sinclair\/)?typebox(?:\/|$)/, 'json', /^Static$/, /^Static(?:De|En)code$/],
  [/^json-schema-to-ts$/, 'json', /^FromSchema$/, /^$/],
];

/** By the last name of `typeof NewUser.infer`: the vendor. A name for what the client sends has none. */
const INFERRING_FIELDS: Readonly<Record<string, string | undefined>> = Object.assign(Object.create(null), {
  infer: 'arktype',
  inferOut: 'arktype',
  inferIn: '',
  Type: 'effect',
  Encoded: '',
  static: 'json',
});

export function inferredType(node: NameNode, type: PackageType, scope: Scope, fail: Fail): Shape | undefined {
  const { packageName, exportedName } = type;
  const [, vendor = '', outputs, inputs] = LIBRARIES.find(([packages]) => packages.test(packageName)) ?? [];
  const name = exportedName.replace(/^.*\./, '');
  const [arg] = node.args;
  if (inputs?.test(name)) return fail(`${node.name} is what a client sends`, INPUT_CURE);
  if (outputs?.test(name) !== true || arg === undefined) return undefined;
  if (arg.kind !== 'typeof')
    fail(`${node.name} needs the name of a schema`, `write ${node.name}<typeof NewUser>, in a type without parameters`);
  return schemaShape(arg.name, vendor, arg.at, scope, fail);
}

const INPUT_CURE = 'the operation gets the output of the schema: write the type of its output';

/** @param name `NewUser.infer`. @returns undefined for a name that no library has */
export function inferredField(name: string, at: number, scope: Scope, fail: Fail): Shape | undefined {
  const [, schema, field = ''] = /^(.+)\.(\w+)$/.exec(name) ?? [];
  const vendor = INFERRING_FIELDS[field];
  if (schema === undefined || vendor === undefined) return undefined;
  if (vendor === '') return fail(`typeof ${name} is what a client sends`, INPUT_CURE);
  return schemaShape(schema, vendor, at, scope, fail);
}

function schemaShape(name: string, vendor: string, at: number, scope: Scope, fail: Fail): Shape {
  const [head, ...fields] = name.split('.') as [string, ...string[]];
  if (scope.params?.has(head))
    fail(`in this signature, typeof ${head} means the parameter ${head}`, 'give the parameter another name');
  const { path: declaring, keys } = findExport(head, fields, scope, fail);
  // Declarations are beside the JavaScript that runs.
  const path = declaring.replace(/\.d\.([mc]?)ts$/, '.$1js');
  const message = `a type that is inferred from the schema ${name} is the whole data, query, path or result`;
  const cure = `write a schema for this type, such as an array, a union or a part of ${name}, and infer the type from it`;
  const shape = failingShape(new Unsupported(message, scope.path, at, cure));
  const id = `schema ${path}#${keys.join('.')} ${vendor}`;
  return { ...shape, name: keys.join('_'), id, inferredFrom: { name, path, keys, vendor, from: scope.path, at } };
}

/** Finds the module that exports a value. At run time, a name that is exported again has the value of its origin. */
function findExport(head: string, fields: string[], scope: Scope, fail: Fail): { path: string; keys: string[] } {
  const { module, path } = scope;
  const declared = findValue(head, scope);
  if (typeof declared === 'object') {
    const { isValueUncertain, kind } = declared.declaration;
    if (isValueUncertain === true || (kind !== 'const' && kind !== 'class'))
      fail(`${head} may have another value than the one in the source`, `declare it with const ${head} = …`);
  }
  const imported = module.imports.get(head);
  if (imported === undefined) {
    const exported = [...module.exports].find(([, local]) => local === head)?.[0];
    if (declared === undefined) fail(`there is no value ${head} here`, 'import it by name');
    if (exported === undefined)
      fail(`the schema ${head} is not exported, so its value cannot be read`, `write export const ${head} = …`);
    return { path, keys: [exported as string, ...fields] };
  }
  // Such a specifier gives the importing file an instance of its own, which is not the one that would be read.
  if (/[?#]/.test(imported.from.slice(1)))
    return fail(`the schema ${head} is imported by a specifier with a query`, 'import it without the query');
  const loaded = scope.load(path, imported.from, 'value');
  if (typeof loaded !== 'object')
    return fail(
      `the schema ${head} is imported from ${imported.from}, which is ${loaded === 'package' ? 'a package' : 'not found'}`,
      `export it from a file of your own: export { ${imported.name} } from '${imported.from}'`,
    );
  const keys = imported.name === '*' ? fields : [imported.name, ...fields];
  if (isVariable(keys[0] ?? '', { ...scope, ...loaded }))
    fail(`${head} may get another value after the start`, 'declare it with const where it comes from');
  return { path: loaded.path, keys };
}

/** Whether an export is a `let` or `var`, also of a file from which it is exported again by name. */
function isVariable(name: string, { module, path, load }: Scope): boolean {
  const target = module.exports.get(name);
  const imported = typeof target === 'string' ? module.imports.get(target) : target;
  if (imported === undefined)
    return module.declarations.get(String(target))?.some(({ isValueUncertain }) => isValueUncertain === true) === true;
  const loaded = load(path, imported.from, 'value');
  return typeof loaded === 'object' && isVariable(imported.name, { ...loaded, load, typeParams: NO_TYPE_PARAMS });
}

/** Returns the schema from which a type is inferred, also by other names for the type. @throws Unsupported */
export function schemaOf(shape: Shape): SchemaReference | undefined {
  let target = shape;
  for (let steps = 0; target.kind === 'named' && steps < 100; steps++) {
    if (target.inferredFrom !== undefined) return target.inferredFrom;
    target = target.target();
  }
  return undefined;
}
