// /api/profiles/{username}: the public profile of a user, and who follows whom.
import type { ControllerParams, Operations } from 'gatefold';
import { sql } from '../lib/database.ts';
import type { OneProfile, User } from '../lib/types.ts';
import { findProfile } from '../lib/users.ts';

type ByUser = ControllerParams<{ path: { username: string }; user: User }>;
type ByAnyone = ControllerParams<{ path: { username: string }; user?: User }>;

export default class ProfilesController {
  static operations: Operations<ProfilesController> = { 'GET {username}': { access: 'anyone' } };

  'GET {username}'(_: undefined, { path, user }: ByAnyone): Promise<OneProfile> {
    return findProfile(path.username, user);
  }

  async 'POST {username}/follow'(_: undefined, { path, user }: ByUser): Promise<OneProfile> {
    await sql`insert into follows (follower, followed)
      select ${user.id}, id from users where username = ${path.username} on conflict do nothing`;
    return findProfile(path.username, user);
  }

  async 'DELETE {username}/follow'(_: undefined, { path, user }: ByUser): Promise<OneProfile> {
    await sql`delete from follows
      where follower = ${user.id} and followed = (select id from users where username = ${path.username})`;
    return findProfile(path.username, user);
  }
}
