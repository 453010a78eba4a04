// /api/users: who is signed in, and how members look.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { type ControllerParams, fileReply, HttpError, type Operations, Reply } from 'gatefold';
import type { User } from '../lib/auth.ts';
import { db } from '../lib/database.ts';
import { AVATARS } from '../lib/files.ts';
import { user as users } from '../lib/schema.ts';

type Signed = ControllerParams<{ user: User }>;

/** The types of images that are taken, and the ends of their names. */
const IMAGES: Readonly<Record<string, string>> = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp' };

export default class UsersController {
  static operations: Operations<UsersController> = { 'PUT me/avatar': { bodyLimit: 2_000_000 } };

  'GET me'(_: undefined, { user }: Signed): User {
    return user;
  }

  async 'PUT me/avatar'({ image }: { image: File }, { user }: Signed): Promise<Reply<204>> {
    const end = IMAGES[image.type];
    if (end === undefined) throw new HttpError(415, 'NO_IMAGE', 'Send an image: PNG, JPEG or WebP');
    const name = `${user.id}.${end}`;
    await mkdir(AVATARS, { recursive: true });
    await writeFile(join(AVATARS, name), image.stream());
    await db.update(users).set({ image: name }).where(eq(users.id, user.id));
    return new Reply(204);
  }

  async 'GET {id}/avatar'(
    _: undefined,
    { path }: ControllerParams<{ path: { id: string } }>,
  ): Promise<Reply<200, Uint8Array>> {
    const [found] = await db.select().from(users).where(eq(users.id, path.id));
    return fileReply(AVATARS, found?.image ?? '');
  }
}
