// The report of a day: a row for each team, and a mail to its owners. A repeated run finds the row and sends nothing.
import { and, count, eq } from 'drizzle-orm';
import { db } from './database.ts';
import { sendLater } from './mails.ts';
import { members, projects, reports, tasks, teams, user } from './schema.ts';

export async function reportDay(dueAt: Date): Promise<void> {
  const day = dueAt.toISOString().slice(0, 10);
  for (const team of await db.select().from(teams)) {
    const [row] = await db
      .select({ open: count(tasks.id) })
      .from(tasks)
      .innerJoin(projects, eq(projects.id, tasks.projectId))
      .where(and(eq(projects.teamId, team.id), eq(tasks.state, 'open')));
    const open = row?.open ?? 0;
    await db.transaction(async (tx) => {
      const made = await tx.insert(reports).values({ teamId: team.id, day, open }).onConflictDoNothing().returning();
      if (made.length === 0) return;
      const owners = await tx
        .select({ email: user.email })
        .from(members)
        .innerJoin(user, eq(user.id, members.userId))
        .where(and(eq(members.teamId, team.id), eq(members.role, 'owner')));
      for (const { email } of owners)
        await sendLater({ to: email, subject: `${team.name}, ${day}`, text: `${open} tasks are open.` });
    });
  }
}
