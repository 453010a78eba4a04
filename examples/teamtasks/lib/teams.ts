// Teams: their roles, and what happened in them.
import { and, eq } from 'drizzle-orm';
import { channel, HttpError, type Int } from 'gatefold';
import type { User } from './auth.ts';
import { db } from './database.ts';
import { type Activity, activity, members, projects, type Role, type Task, tasks } from './schema.ts';

/** An event for the browsers of a team, which then load the team again. */
export interface Change {
  teamId: Int;
  /** The id of a user who is no member any more. */
  left?: string;
}
export const changes = channel<Change>('changes');

export const WRITERS: readonly Role[] = ['owner', 'member'];

/** Refuses a user who is no member of the team, as if there were no such team, and one with another role. */
export async function checkMember(teamId: number, user: User, roles?: readonly Role[]): Promise<void> {
  const [member] = await db
    .select()
    .from(members)
    .where(and(eq(members.teamId, teamId), eq(members.userId, user.id)));
  if (member === undefined) throw new HttpError(404, 'TEAM_NOT_FOUND', 'There is no such team');
  if (roles !== undefined && !roles.includes(member.role))
    throw new HttpError(403, 'ROLE', `Your role in the team is ${member.role}`);
}

/** Finds a project, if the user is a member of its team. */
export async function findProject(id: number, user: User, roles?: readonly Role[]) {
  const [project] = await db.select().from(projects).where(eq(projects.id, id));
  if (project === undefined) throw new HttpError(404, 'PROJECT_NOT_FOUND', 'There is no such project');
  await checkMember(project.teamId, user, roles);
  return project;
}

/** Finds a task and its team, if the user is a member of the team. */
export async function findTask(id: number, user: User, roles?: readonly Role[]): Promise<[task: Task, teamId: number]> {
  const [task] = await db.select().from(tasks).where(eq(tasks.id, id));
  if (task === undefined) throw new HttpError(404, 'TASK_NOT_FOUND', 'There is no such task');
  const { teamId } = await findProject(task.projectId, user, roles);
  return [task, teamId];
}

/** Adds a line to the activity of a team, and publishes the change to its browsers. */
export async function record(teamId: number, user: User, what: Activity['what'], subject: string): Promise<void> {
  await db.insert(activity).values({ teamId, actor: user.name, what, subject });
  await changes.publish({ teamId });
}

/** The changes of a team, for a member. After `reset`, and at the beginning, the browser loads everything. */
export async function* changesOf(teamId: number, user: User, after: string | undefined, signal: AbortSignal) {
  for await (const item of changes.subscribe({ after: after ?? '', signal })) {
    if (item.event !== 'reset' && item.data.teamId !== teamId) continue;
    if (item.data?.left === user.id) return;
    yield item;
  }
}
