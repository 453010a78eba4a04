// The tables. drizzle-zod makes the checks of requests from them, and `npm run generate` the migrations.
import { sql } from 'drizzle-orm';
import { boolean, date, index, integer, pgTable, primaryKey, text, timestamp, unique, uuid } from 'drizzle-orm/pg-core';
import { createInsertSchema, createSelectSchema } from 'drizzle-zod';
import { z } from 'zod';

const id = () => integer().primaryKey().generatedAlwaysAsIdentity();
const createdAt = () => timestamp({ withTimezone: true }).notNull().defaultNow();

// The four tables of better-auth, with its names.
export const user = pgTable('user', {
  id: text().primaryKey(),
  name: text().notNull(),
  email: text().notNull().unique(),
  emailVerified: boolean().notNull().default(false),
  image: text(),
  createdAt: createdAt(),
  updatedAt: createdAt(),
});
const userId = () => text().references(() => user.id, { onDelete: 'cascade' });

export const session = pgTable('session', {
  id: text().primaryKey(),
  userId: userId().notNull(),
  token: text().notNull().unique(),
  expiresAt: timestamp({ withTimezone: true }).notNull(),
  ipAddress: text(),
  userAgent: text(),
  createdAt: createdAt(),
  updatedAt: createdAt(),
});

export const account = pgTable('account', {
  id: text().primaryKey(),
  userId: userId().notNull(),
  accountId: text().notNull(),
  providerId: text().notNull(),
  accessToken: text(),
  refreshToken: text(),
  idToken: text(),
  accessTokenExpiresAt: timestamp({ withTimezone: true }),
  refreshTokenExpiresAt: timestamp({ withTimezone: true }),
  scope: text(),
  password: text(),
  createdAt: createdAt(),
  updatedAt: createdAt(),
});

export const verification = pgTable('verification', {
  id: text().primaryKey(),
  identifier: text().notNull(),
  value: text().notNull(),
  expiresAt: timestamp({ withTimezone: true }).notNull(),
  createdAt: createdAt(),
  updatedAt: createdAt(),
});

export const teams = pgTable('teams', {
  id: id(),
  name: text().notNull(),
  seats: integer().notNull().default(5),
});
const teamId = () => integer().references(() => teams.id, { onDelete: 'cascade' });

export const members = pgTable(
  'members',
  {
    teamId: teamId().notNull(),
    userId: userId().notNull(),
    role: text({ enum: ['owner', 'member', 'guest'] }).notNull(),
  },
  ({ teamId, userId }) => [primaryKey({ columns: [teamId, userId] })],
);

export const projects = pgTable('projects', { id: id(), teamId: teamId().notNull(), name: text().notNull() });

export const tasks = pgTable(
  'tasks',
  {
    id: id(),
    projectId: integer()
      .notNull()
      .references(() => projects.id, { onDelete: 'cascade' }),
    title: text().notNull(),
    state: text({ enum: ['open', 'doing', 'done'] })
      .notNull()
      .default('open'),
    assigneeId: text().references(() => user.id, { onDelete: 'set null' }),
    due: date(),
    version: integer().notNull().default(1),
    createdAt: createdAt(),
  },
  ({ projectId }) => [index().on(projectId)],
);
const taskId = () =>
  integer()
    .notNull()
    .references(() => tasks.id, { onDelete: 'cascade' });

export const comments = pgTable('comments', {
  id: id(),
  taskId: taskId(),
  author: text().notNull(),
  text: text().notNull(),
  createdAt: createdAt(),
});

export const attachments = pgTable('attachments', {
  id: uuid().primaryKey().default(sql`gen_random_uuid()`),
  taskId: taskId(),
  name: text().notNull(),
  size: integer().notNull(),
  createdAt: createdAt(),
});

export const activity = pgTable('activity', {
  id: id(),
  teamId: teamId().notNull(),
  actor: text().notNull(),
  what: text({ enum: ['added', 'changed', 'removed', 'commented', 'attached', 'invited', 'dismissed'] }).notNull(),
  subject: text().notNull(),
  createdAt: createdAt(),
});

export const orders = pgTable(
  'orders',
  {
    id: id(),
    teamId: teamId().notNull(),
    seats: integer().notNull(),
    paid: boolean().notNull().default(false),
    key: uuid().notNull(),
  },
  ({ teamId, key }) => [unique().on(teamId, key)],
);

export const reports = pgTable(
  'reports',
  {
    teamId: teamId().notNull(),
    day: date().notNull(),
    open: integer().notNull(),
  },
  ({ teamId, day }) => [primaryKey({ columns: [teamId, day] })],
);

// The data of requests and answers. A schema and its type have one name, so that a controller imports the type alone.
const name = z.string().trim().min(1).max(100);
const title = z.string().trim().min(1).max(200);
const due = z.iso.date().nullish();

export const Role = createSelectSchema(members).shape.role;
export type Role = z.infer<typeof Role>;
export const NewTeam = createInsertSchema(teams, { name }).pick({ name: true });
export type NewTeam = z.infer<typeof NewTeam>;
export const Team = createSelectSchema(teams).extend({ role: Role });
export type Team = z.infer<typeof Team>;
export const Teams = z.array(Team);
export type Teams = z.infer<typeof Teams>;

export const NewProject = createInsertSchema(projects, { name }).pick({ teamId: true, name: true });
export type NewProject = z.infer<typeof NewProject>;
export const Project = createSelectSchema(projects);
export type Project = z.infer<typeof Project>;
export const Projects = z.array(Project);
export type Projects = z.infer<typeof Projects>;

export const NewTask = createInsertSchema(tasks, { title, due }).omit({ version: true, createdAt: true });
export type NewTask = z.infer<typeof NewTask>;
export const TaskChange = NewTask.omit({ projectId: true }).partial().extend({ version: z.int().optional() });
export type TaskChange = z.infer<typeof TaskChange>;
export const Task = createSelectSchema(tasks);
export type Task = z.infer<typeof Task>;
export const Tasks = z.array(Task);
export type Tasks = z.infer<typeof Tasks>;

export const NewComment = createInsertSchema(comments, { text: z.string().trim().min(1).max(5000) }).pick({
  text: true,
});
export type NewComment = z.infer<typeof NewComment>;
export const Comment = createSelectSchema(comments);
export type Comment = z.infer<typeof Comment>;
export const Comments = z.array(Comment);
export type Comments = z.infer<typeof Comments>;
export const Attachment = createSelectSchema(attachments);
export type Attachment = z.infer<typeof Attachment>;
export const Attachments = z.array(Attachment);
export type Attachments = z.infer<typeof Attachments>;

export const Activity = createSelectSchema(activity);
export type Activity = z.infer<typeof Activity>;
export const Activities = z.array(Activity);
export type Activities = z.infer<typeof Activities>;

export const NewOrder = createInsertSchema(orders, { seats: z.int().min(1).max(1000) }).pick({
  teamId: true,
  seats: true,
});
export type NewOrder = z.infer<typeof NewOrder>;
export const Order = createSelectSchema(orders).omit({ key: true });
export type Order = z.infer<typeof Order>;
