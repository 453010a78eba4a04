// /api/tasks: the tasks of a project, with comments and attachments.
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { and, asc, eq } from 'drizzle-orm';
import { type ControllerParams, HttpError, type Int, ifMatch, type Operations, Reply, toNodeStream } from 'gatefold';
import type { User } from '../lib/auth.ts';
import { db } from '../lib/database.ts';
import { ATTACHMENTS } from '../lib/files.ts';
import { sendLater } from '../lib/mails.ts';
import {
  type Attachment,
  type Attachments,
  attachments,
  type Comment,
  type Comments,
  comments,
  type NewComment,
  type NewTask,
  Task,
  type TaskChange,
  type Tasks,
  tasks,
  user as users,
} from '../lib/schema.ts';
import { checkMember, findProject, findTask, record, WRITERS } from '../lib/teams.ts';

interface TaskQuery {
  project: Int;
  /** Without it, tasks of every state. */
  state?: 'open' | 'doing' | 'done';
  /** Begins at 1. A page has 50 tasks. @minimum 1
   *  @default 1 */
  page?: Int;
}

type Signed = ControllerParams<{ user: User }>;
type OfTask = ControllerParams<{ path: { id: Int }; user: User }>;
type OfFile = ControllerParams<{ path: { id: Int; name: string }; user: User }>;

const PAGE = 50;
const etagOf = ({ version }: Task): string => `"${version}"`;

export default class TasksController {
  static operations: Operations<TasksController> = {
    GET: { tool: 'find_tasks' },
    POST: { tool: 'add_task', status: 201 },
    'GET {id}': { tool: 'get_task', result: Task },
    'PATCH {id}': { tool: 'change_task' },
    'GET {id}/comments': { tool: 'list_comments' },
    'POST {id}/comments': { tool: 'comment_task', status: 201 },
    'PUT {id}/attachments/{name}': { body: 'stream', bodyLimit: 1e9, timeout: 600_000, status: 201 },
  };

  /** Finds the tasks of a project, the oldest first. */
  async GET({ project, state, page = 1 }: TaskQuery, { user }: Signed): Promise<Tasks> {
    await findProject(project, user);
    return db
      .select()
      .from(tasks)
      .where(and(eq(tasks.projectId, project), state === undefined ? undefined : eq(tasks.state, state)))
      .orderBy(asc(tasks.id))
      .limit(PAGE)
      .offset((page - 1) * PAGE);
  }

  /** Adds a task to a project. Its assignee gets a mail. */
  async POST(task: NewTask, { user }: Signed): Promise<Task> {
    const { teamId } = await findProject(task.projectId, user, WRITERS);
    await checkAssignee(teamId, task.assigneeId);
    const [made] = await db.insert(tasks).values(task).returning();
    if (made === undefined) throw new Error('the insert returned no row');
    await record(teamId, user, 'added', made.title);
    await mailAssignee(made, user);
    return made;
  }

  /** Gets one task. */
  async 'GET {id}'(_: undefined, { path, user }: OfTask): Promise<Reply<200, Task>> {
    const [task] = await findTask(path.id, user);
    return new Reply(200, task, { ETag: etagOf(task), 'Cache-Control': 'no-cache' });
  }

  /** Changes the fields that are sent, and no others, if the task still has the version that is sent. */
  async 'PATCH {id}'({ version, ...change }: TaskChange, params: OfTask): Promise<Task> {
    const { path, user } = params;
    const [before, teamId] = await findTask(path.id, user, WRITERS);
    if (version === undefined) ifMatch(params, etagOf(before), { required: true });
    await checkAssignee(teamId, change.assigneeId);
    const [task] = await db
      .update(tasks)
      .set({ ...change, version: before.version + 1 })
      .where(and(eq(tasks.id, path.id), eq(tasks.version, version ?? before.version)))
      .returning();
    if (task === undefined)
      throw new HttpError(412, 'CHANGED', 'Somebody has changed the task: get it again before you change it');
    await record(teamId, user, 'changed', task.title);
    if (task.assigneeId !== before.assigneeId) await mailAssignee(task, user);
    return task;
  }

  async 'DELETE {id}'(_: undefined, { path, user }: OfTask): Promise<Reply<204>> {
    const [task, teamId] = await findTask(path.id, user, WRITERS);
    await db.delete(tasks).where(eq(tasks.id, task.id));
    await record(teamId, user, 'removed', task.title);
    return new Reply(204);
  }

  /** Lists the comments of a task, the oldest first. */
  async 'GET {id}/comments'(_: undefined, { path, user }: OfTask): Promise<Comments> {
    const [task] = await findTask(path.id, user);
    return db.select().from(comments).where(eq(comments.taskId, task.id)).orderBy(comments.id);
  }

  /** Adds a comment to a task. Nobody can change it. */
  async 'POST {id}/comments'({ text }: NewComment, { path, user }: OfTask): Promise<Comment> {
    const [task, teamId] = await findTask(path.id, user, WRITERS);
    const [comment] = await db.insert(comments).values({ taskId: task.id, author: user.name, text }).returning();
    if (comment === undefined) throw new Error('the insert returned no row');
    await record(teamId, user, 'commented', task.title);
    return comment;
  }

  async 'GET {id}/attachments'(_: undefined, { path, user }: OfTask): Promise<Attachments> {
    const [task] = await findTask(path.id, user);
    return db.select().from(attachments).where(eq(attachments.taskId, task.id)).orderBy(attachments.createdAt);
  }

  /** Attaches a file of up to 1 GB. It goes to the disk as it comes. */
  async 'PUT {id}/attachments/{name}'(data: ReadableStream, { path, user, signal }: OfFile): Promise<Attachment> {
    const [task, teamId] = await findTask(path.id, user, WRITERS);
    const id = randomUUID();
    await mkdir(ATTACHMENTS, { recursive: true });
    const file = createWriteStream(join(ATTACHMENTS, id));
    try {
      await pipeline(toNodeStream(data), file, { signal });
      const row = { id, taskId: task.id, name: path.name, size: file.bytesWritten };
      const [attachment] = await db.insert(attachments).values(row).returning();
      if (attachment === undefined) throw new Error('the insert returned no row');
      await record(teamId, user, 'attached', path.name);
      return attachment;
    } catch (error) {
      await rm(file.path, { force: true });
      throw error;
    }
  }
}

async function checkAssignee(teamId: number, id: string | null | undefined): Promise<void> {
  if (id) await checkMember(teamId, { id, name: '' });
}

async function mailAssignee({ assigneeId, title }: Task, by: User): Promise<void> {
  if (assigneeId === null || assigneeId === by.id) return;
  const [user] = await db.select().from(users).where(eq(users.id, assigneeId));
  if (user === undefined || user.email.endsWith('@programs.invalid')) return;
  await sendLater({ to: user.email, subject: title, text: `${by.name} has assigned "${title}" to you.` });
}
