// The errors of names whose types are not read. Each one says what to write instead, by the cause.
import { isTsconfigPath } from '../source/declaration-file.ts';
import { ASK, Unsupported, WRITE_OUT } from '../source/source-error.ts';
import type { NameNode } from '../source/syntax.ts';
import type { PackageType, Scope, UnreadType } from './look-up.ts';
import type { Fail } from './shape.ts';

/** Packages whose types come from values for which another package makes schemas. */
const SCHEMA_MAKERS: readonly (readonly [packages: RegExp, cure: string])[] = [
  [
    /^drizzle-orm(?:\/|$)/,
    `export const NewRow = createInsertSchema(table), of drizzle-zod, and write z.infer<typeof NewRow>; or ${ASK}`,
  ],
  [
    /^(?:zod|valibot|arktype|effect|yup|(?:@sinclair\/)?typebox)(?:\/|$)/,
    'infer the type from a schema that is exported, such as z.infer<typeof NewUser>',
  ],
  [/^(?:express|fastify|koa|hono)(?:\/|$)/, 'write data: T, params: ControllerParams'],
];

export function failForPackage(name: string, type: PackageType, scope: Scope, fail: Fail): never {
  const { packageName, isInstalled } = type;
  if (!isInstalled && packageName.startsWith('#'))
    fail(`${name} comes from ${packageName}, and the imports of package.json lead to no such file`, 'correct them');
  if (!isInstalled && isTsconfigPath(scope.path, packageName))
    fail(
      `${name} comes from ${packageName}, a path of tsconfig.json, which Node does not follow`,
      "write a name such as #lib/* into the imports of package.json, and import '#lib/…'",
    );
  const cure = SCHEMA_MAKERS.find(([packages]) => packages.test(packageName))?.[1];
  return fail(`${name} comes from a package, whose types are not read`, cure ?? WRITE_OUT);
}

export function failForUnread({ name, at }: NameNode, { unread, cure }: UnreadType, { path }: Scope): never {
  const error = new Unsupported(`${name} is imported from ${unread}`, path, at, cure);
  throw Object.assign(error, { isStale: cure !== undefined });
}

/** @param from the file from which the name is imported; undefined for a global name */
export function failForMissing(name: string, from: string | undefined, fail: Fail): never {
  if (from !== undefined)
    return fail(`${name} is imported from ${from}, which exports no such type`, 'export it there');
  const message = `there is no type ${name} here`;
  if (name.includes('.')) return fail(`${message}, and namespaces are not read`, WRITE_OUT);
  return fail(message, `global declarations are not read: export the type, and import it by name; or ${ASK}`);
}

/** Returns the advice for `typeof users.$inferInsert`, the type of a table of Drizzle, and for other values. */
export function tableCure(name: string): string {
  const [, table, kind] = /^(.+)\.\$infer(Insert|Select)$/.exec(name) ?? [];
  if (table === undefined) return WRITE_OUT;
  return `export const NewRow = create${kind}Schema(${table}), of drizzle-zod, and write z.infer<typeof NewRow>; or ${ASK}`;
}
