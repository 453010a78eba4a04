// People sign in with e-mail and password, by better-auth. Other programs have a key, and are members like people.
import { betterAuth } from 'better-auth';
import { drizzleAdapter } from 'better-auth/adapters/drizzle';
import type { AccessParams } from 'gatefold';
import { db } from './database.ts';
import { account, session, user, verification } from './schema.ts';

export interface User {
  id: string;
  name: string;
}

export const auth = betterAuth({
  baseURL: process.env.PUBLIC_ORIGIN,
  basePath: '/api/auth',
  database: drizzleAdapter(db, { provider: 'pg', schema: { user, session, account, verification } }),
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false }, // AuthController has a limit
});

/** Finds who calls, and lets the cookie of better-auth slide. */
export async function userOf({ application, request, appendHeader }: AccessParams): Promise<User | undefined> {
  if (application !== undefined) return { id: application.id, name: application.name };
  if (request.headers.cookie === undefined) return undefined;
  const headers = new Headers({ cookie: request.headers.cookie });
  const found = await auth.api.getSession({ headers, returnHeaders: true });
  for (const cookie of found.headers.getSetCookie()) appendHeader('Set-Cookie', cookie);
  return found.response?.user;
}
