// The API, with the types of its controllers, and sign-in by the client of better-auth.
import { createAuthClient } from 'better-auth/react';
import { createClient, isApiError } from 'gatefold/client';
import type ProjectsController from '../../controllers/ProjectsController.ts';
import type TasksController from '../../controllers/TasksController.ts';
import type TeamsController from '../../controllers/TeamsController.ts';
import type { Problem } from '../../lib/errors.ts';

export const api = createClient<{
  teams: typeof TeamsController;
  projects: typeof ProjectsController;
  tasks: typeof TasksController;
}>('');

export const auth = createAuthClient();

type Rows<Result> = Awaited<Result> extends readonly (infer Row)[] ? Row : never;
export type Team = Rows<ReturnType<typeof api.teams.GET>>;
export type Project = Rows<ReturnType<typeof api.projects.GET>>;
export type Task = Rows<ReturnType<typeof api.tasks.GET>>;
export type Member = Rows<ReturnType<(typeof api.teams)['GET {id}/members']>>;
export type Activity = Rows<ReturnType<(typeof api.teams)['GET {id}/activity']>>;

/** Returns the text of a refusal: the message, and that of each field. */
export function textOf(error: unknown): string {
  if (!isApiError<Problem>(error) || error.body?.message === undefined) return 'That did not work. Try again.';
  const { message, fields } = error.body;
  return [message, ...fields.map(({ pointer, message }) => `${pointer.slice(1)} ${message}`)].join('\n');
}
