// /api/projects: the projects of a team.
import { eq } from 'drizzle-orm';
import type { ControllerParams, Int, Operations } from 'gatefold';
import type { User } from '../lib/auth.ts';
import { db } from '../lib/database.ts';
import { type NewProject, type Project, type Projects, projects } from '../lib/schema.ts';
import { checkMember, record, WRITERS } from '../lib/teams.ts';

type Signed = ControllerParams<{ user: User }>;

export default class ProjectsController {
  static operations: Operations<ProjectsController> = { GET: { tool: 'list_projects' }, POST: { status: 201 } };

  /** Lists the projects of a team. */
  async GET({ team }: { team: Int }, { user }: Signed): Promise<Projects> {
    await checkMember(team, user);
    return db.select().from(projects).where(eq(projects.teamId, team)).orderBy(projects.id);
  }

  async POST(project: NewProject, { user }: Signed): Promise<Project> {
    await checkMember(project.teamId, user, WRITERS);
    const [made] = await db.insert(projects).values(project).returning();
    if (made === undefined) throw new Error('the insert returned no row');
    await record(made.teamId, user, 'added', made.name);
    return made;
  }
}
