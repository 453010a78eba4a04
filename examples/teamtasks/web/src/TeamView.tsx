import { useCallback, useEffect, useState } from 'react';
import { type Activity, api, type Member, type Project, type Task, type Team } from './api.ts';
import { Form } from './Form.tsx';
import { TaskDialog } from './TaskDialog.tsx';

const STATES = ['open', 'doing', 'done'] as const;

export function TeamView({ team }: { team: Team }) {
  const [projects, setProjects] = useState<Project[]>([]);
  const [project, setProject] = useState<number>();
  const [members, setMembers] = useState<Member[]>([]);
  const [tasks, setTasks] = useState<Task[]>([]);
  const [activity, setActivity] = useState<Activity[]>([]);
  const [open, setOpen] = useState<number>();
  const opened = tasks.find(({ id }) => id === open);
  const path = { id: team.id };

  const load = useCallback(async () => {
    const path = { id: team.id };
    const [projects, members, activity] = await Promise.all([
      api.projects.GET({ query: { team: team.id } }),
      api.teams['GET {id}/members']({ path }),
      api.teams['GET {id}/activity']({ path }),
    ]);
    const shown = project ?? projects[0]?.id;
    setProjects(projects);
    setMembers(members);
    setActivity(activity);
    setProject(shown);
    setTasks(shown === undefined ? [] : await tasksOf(shown));
  }, [team.id, project]);
  useEffect(() => {
    let end = new AbortController();
    // A browser has six connections for all tabs, and a stream keeps one. So a tab that nobody sees has no stream.
    const watch = () => {
      end.abort();
      if (document.hidden) return;
      end = new AbortController();
      const { signal } = end;
      follow(team.id, load, signal).catch((error) => {
        if (!signal.aborted) throw error;
      });
    };
    document.addEventListener('visibilitychange', watch);
    watch();
    return () => {
      document.removeEventListener('visibilitychange', watch);
      end.abort();
    };
  }, [team.id, load]);

  const change = (task: Task, body: { state: Task['state'] }) =>
    api.tasks['PATCH {id}']({ path: { id: task.id }, body: { ...body, version: task.version } });

  return (
    <div className="team">
      <nav aria-label="Projects">
        <h2>Projects</h2>
        {projects.map(({ id, name }) => (
          <button
            key={id}
            type="button"
            aria-current={id === project ? 'page' : undefined}
            onClick={() => setProject(id)}
          >
            {name}
          </button>
        ))}
        <Form
          label="New project"
          button="Add project"
          send={async ({ name = '' }) => setProject((await api.projects.POST({ body: { teamId: team.id, name } })).id)}
        >
          <label>
            Project <input name="name" required />
          </label>
        </Form>
      </nav>
      <main>
        <h2>Tasks</h2>
        {project !== undefined && (
          <Form
            label="New task"
            button="Add task"
            send={({ title = '' }) => api.tasks.POST({ body: { projectId: project, title } })}
          >
            <label>
              Task <input name="title" required />
            </label>
          </Form>
        )}
        <ul className="tasks">
          {tasks.map((task) => (
            <li key={task.id} className={task.state}>
              <button type="button" className="quiet" onClick={() => setOpen(task.id)}>
                {task.title}
              </button>
              <select
                aria-label={`State of ${task.title}`}
                value={task.state}
                onChange={({ target }) => change(task, { state: target.value as Task['state'] })}
              >
                {STATES.map((state) => (
                  <option key={state}>{state}</option>
                ))}
              </select>
            </li>
          ))}
        </ul>
      </main>
      <aside>
        <h2>Members</h2>
        <ul>
          {members.map(({ id, name, role }) => (
            <li key={id}>
              {name}, {role}
            </li>
          ))}
        </ul>
        {team.role === 'owner' && (
          <Form
            label="New member"
            button="Add member"
            send={({ email = '' }) =>
              api.teams['POST {id}/members']({ path, body: { kind: 'person', email, role: 'member' } })
            }
          >
            <label>
              E-mail of the member <input name="email" type="email" required />
            </label>
          </Form>
        )}
        <h2>Activity</h2>
        <ul className="activity">
          {activity.map(({ id, actor, what, subject }) => (
            <li key={id}>
              <b>{actor}</b> {what} {subject}
            </li>
          ))}
        </ul>
      </aside>
      {opened && <TaskDialog task={opened} members={members} close={() => setOpen(undefined)} />}
    </div>
  );
}

/** Loads all tasks of a project. The API has a page for each 50. */
async function tasksOf(project: number): Promise<Task[]> {
  const tasks: Task[] = [];
  for (let page = 1; tasks.length === (page - 1) * 50; page++)
    tasks.push(...(await api.tasks.GET({ query: { project, page } })));
  return tasks;
}

/** Loads at the beginning and after each change. The client connects again by itself, and misses nothing. */
async function follow(id: number, load: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for await (const _ of await api.teams['GET {id}/live']({ path: { id }, signal })) await load();
}
