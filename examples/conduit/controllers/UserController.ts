// /api/user: the signed-in user.
import type { ControllerParams } from 'gatefold';
import type { OneUser, User, UserChange } from '../lib/types.ts';
import { toAnswer, updateUser } from '../lib/users.ts';

type Params = ControllerParams<{ user: User }>;

export default class UserController {
  GET(_: undefined, { user }: Params): OneUser {
    return toAnswer(user);
  }

  async PUT({ user: change }: { user: UserChange }, { user }: Params): Promise<OneUser> {
    return toAnswer(await updateUser(user, change));
  }
}
