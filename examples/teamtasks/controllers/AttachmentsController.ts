// /api/attachments/{id}: downloads, also of a part.
import { eq } from 'drizzle-orm';
import { type ControllerParams, fileReply, HttpError, type Reply, type Uuid } from 'gatefold';
import type { User } from '../lib/auth.ts';
import { db } from '../lib/database.ts';
import { ATTACHMENTS } from '../lib/files.ts';
import { attachments } from '../lib/schema.ts';
import { findTask } from '../lib/teams.ts';

type OfAttachment = ControllerParams<{ path: { id: Uuid }; user: User }>;

export default class AttachmentsController {
  async 'GET {id}'(_: undefined, { path, user }: OfAttachment): Promise<Reply<200, Uint8Array>> {
    const [found] = await db.select().from(attachments).where(eq(attachments.id, path.id));
    if (found === undefined) throw new HttpError(404, 'FILE_NOT_FOUND', 'There is no such file');
    await findTask(found.taskId, user);
    return fileReply(ATTACHMENTS, found.id, { download: found.name });
  }
}
