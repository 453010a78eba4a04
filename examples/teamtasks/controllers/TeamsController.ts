// /api/teams: teams, their members and what happened there.
import { and, count, desc, eq, lt } from 'drizzle-orm';
import {
  type ControllerParams,
  type Email,
  type EventStream,
  eventStream,
  HttpError,
  type Int,
  type Operations,
  Reply,
} from 'gatefold';
import type { User } from '../lib/auth.ts';
import { db } from '../lib/database.ts';
import { sendLater } from '../lib/mails.ts';
import {
  type Activities,
  activity,
  members,
  type NewTeam,
  type Role,
  type Team,
  type Teams,
  teams,
  user as users,
} from '../lib/schema.ts';
import { type Change, changes, changesOf, checkMember, record } from '../lib/teams.ts';

/** A person who has signed up, or the key of a program. */
type NewMember =
  | { kind: 'person'; email: Email; role: 'owner' | 'member' | 'guest' }
  | { kind: 'program'; id: string; name: string; role: 'member' | 'guest' };

interface Member {
  id: string;
  name: string;
  role: 'owner' | 'member' | 'guest';
}

type Signed = ControllerParams<{ user: User }>;
type OfTeam = ControllerParams<{ path: { id: Int }; user: User }>;
type OfMember = ControllerParams<{ path: { id: Int; member: string }; user: User }>;

export default class TeamsController {
  static operations: Operations<TeamsController> = {
    GET: { tool: 'list_teams' },
    POST: { status: 201 },
    'POST {id}/members': { status: 201 },
  };

  /** Lists the teams of the caller. */
  async GET(_: undefined, { user }: Signed): Promise<Teams> {
    return db
      .select({ id: teams.id, name: teams.name, seats: teams.seats, role: members.role })
      .from(members)
      .innerJoin(teams, eq(teams.id, members.teamId))
      .where(eq(members.userId, user.id))
      .orderBy(teams.id);
  }

  /** Makes a team, whose owner is the caller. */
  async POST({ name }: NewTeam, { user, application }: Signed): Promise<Team> {
    if (application !== undefined)
      throw new HttpError(403, 'PEOPLE_ONLY', 'A person makes the team, and adds the program');
    const role: Role = 'owner';
    return db.transaction(async (tx) => {
      const [team] = await tx.insert(teams).values({ name }).returning();
      if (team === undefined) throw new Error('the insert returned no row');
      await tx.insert(members).values({ teamId: team.id, userId: user.id, role });
      return { ...team, role };
    });
  }

  /** Lists the members of a team. */
  async 'GET {id}/members'(_: undefined, { path, user }: OfTeam): Promise<Member[]> {
    await checkMember(path.id, user);
    return db
      .select({ id: users.id, name: users.name, role: members.role })
      .from(members)
      .innerJoin(users, eq(users.id, members.userId))
      .where(eq(members.teamId, path.id))
      .orderBy(users.name);
  }

  /** Adds a member. A person gets a mail. A program is named by the id of its key. */
  async 'POST {id}/members'(member: NewMember, { path, user }: OfTeam): Promise<Member> {
    await checkMember(path.id, user, ['owner']);
    const found = member.kind === 'person' ? await findPerson(member.email) : await makeProgram(member);
    const team = await db.transaction(async (tx) => {
      const [team] = await tx.select().from(teams).where(eq(teams.id, path.id)).for('update');
      const [taken] = await tx.select({ seats: count() }).from(members).where(eq(members.teamId, path.id));
      if (team === undefined || taken === undefined || taken.seats >= team.seats)
        throw new HttpError(402, 'NO_SEAT', 'The team has no seat left: order some');
      const row = { teamId: path.id, userId: found.id, role: member.role };
      await tx
        .insert(members)
        .values(row)
        .onConflictDoUpdate({ target: [members.teamId, members.userId], set: { role: row.role } });
      return team;
    });
    await record(path.id, user, 'invited', found.name);
    if (member.kind === 'person')
      await sendLater({ to: member.email, subject: team.name, text: `${user.name} has added you to ${team.name}.` });
    return { id: found.id, name: found.name, role: member.role };
  }

  async 'DELETE {id}/members/{member}'(_: undefined, { path, user }: OfMember): Promise<Reply<204>> {
    if (path.member !== user.id) await checkMember(path.id, user, ['owner']);
    const ofMember = and(eq(members.teamId, path.id), eq(members.userId, path.member));
    const left = await db.delete(members).where(ofMember).returning();
    // Without this line, everybody could write into the activity of every team.
    if (left.length === 0) throw new HttpError(404, 'MEMBER_NOT_FOUND', 'There is no such member');
    const [gone] = await db.select().from(users).where(eq(users.id, path.member));
    await record(path.id, user, 'dismissed', gone?.name ?? '');
    await changes.publish({ teamId: path.id, left: path.member });
    return new Reply(204);
  }

  /** Lists what happened in a team, the newest first. `before` is the id of the last line that you have. */
  async 'GET {id}/activity'({ before }: { before?: Int }, { path, user }: OfTeam): Promise<Activities> {
    await checkMember(path.id, user);
    return db
      .select()
      .from(activity)
      .where(and(eq(activity.teamId, path.id), before === undefined ? undefined : lt(activity.id, before)))
      .orderBy(desc(activity.id))
      .limit(30);
  }

  /** An event for each change in the team, for pages that are live. */
  async 'GET {id}/live'(
    _: undefined,
    { path, user, lastEventId, signal }: OfTeam,
  ): Promise<EventStream<Change | null>> {
    await checkMember(path.id, user);
    return eventStream(changesOf(path.id, user, lastEventId, signal));
  }
}

async function findPerson(email: string): Promise<User> {
  const [person] = await db.select().from(users).where(eq(users.email, email.toLowerCase()));
  if (person === undefined) throw new HttpError(404, 'USER_NOT_FOUND', 'Nobody has signed up with this address');
  return person;
}

/** The first team names the program. An id that belongs to a person is refused: nobody may rename a person. */
async function makeProgram({ id, name }: { id: string; name: string }): Promise<User> {
  const email = `${id}@programs.invalid`;
  const [program] = await db
    .insert(users)
    .values({ id, name, email })
    .onConflictDoUpdate({ target: users.id, set: { email }, setWhere: eq(users.email, email) })
    .returning();
  if (program === undefined) throw new HttpError(404, 'PROGRAM_NOT_FOUND', 'Send the id of the key of a program');
  return program;
}
