// Users: finds the calling user, and returns what a user sees of themselves and of others.
import { HttpError } from 'gatefold';
import { refuseTaken, sql } from './database.ts';
import { hashPassword, isPassword } from './passwords.ts';
import { makeToken, readToken } from './tokens.ts';
import type { Login, NewUser, OneProfile, OneUser, Profile, User, UserChange } from './types.ts';

const COLUMNS = sql`id, email, username, bio, image`;

/** @param authorization the header: `Token jwt.token.here` */
export async function userOfToken(authorization: string | undefined): Promise<User | undefined> {
  const id = readToken(/^Token +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '');
  if (id === undefined) return undefined;
  const [user] = await sql<User[]>`select ${COLUMNS} from users where id = ${id}`;
  return user;
}

export async function register({ username, email, password }: NewUser): Promise<User> {
  const row = { username, email, password: await hashPassword(password) };
  const [user] = await sql<[User]>`insert into users ${sql(row)} returning ${COLUMNS}`.catch(refuseTaken);
  return user;
}

export async function logIn({ email, password }: Login): Promise<User> {
  const [user] = await sql<(User & { password: string })[]>`
    select ${COLUMNS}, password from users where lower(email) = lower(${email})`;
  if (!(await isPassword(password, user?.password)) || user === undefined)
    throw new HttpError(401, 'WRONG_PASSWORD', 'email or password is invalid');
  return user;
}

export async function updateUser({ id }: User, { password, ...change }: UserChange): Promise<User> {
  const row = { ...change, ...(password !== undefined && { password: await hashPassword(password) }) };
  if (Object.keys(row).length === 0) throw new HttpError(422, 'NO_FIELD', 'user needs one field at least');
  const [user] = await sql<[User]>`update users set ${sql(row)} where id = ${id} returning ${COLUMNS}`.catch(
    refuseTaken,
  );
  return user;
}

export function toAnswer({ id, email, username, bio, image }: User): OneUser {
  return { user: { email, username, bio, image, token: makeToken(id) } };
}

/** @param viewer the user who looks, if there is one */
export async function findProfile(username: string, viewer: User | undefined): Promise<OneProfile> {
  const [profile] = await sql<Profile[]>`select ${profileOf(viewer)} from users u where username = ${username}`;
  if (profile === undefined) throw new HttpError(404, 'PROFILE_NOT_FOUND', 'there is no such profile');
  return { profile };
}

function profileOf(viewer: User | undefined) {
  return sql`u.username, u.bio, u.image, exists (
    select from follows where follower = ${viewer?.id ?? null} and followed = u.id) as following`;
}

/** A profile as one column, for a query that has users as `u`. */
export function authorOf(viewer: User | undefined) {
  return sql`(select row_to_json(profile) from (select ${profileOf(viewer)}) profile) as author`;
}
