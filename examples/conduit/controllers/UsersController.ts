// /api/users: registration and login.
import type { Operations } from 'gatefold';
import type { Login, NewUser, OneUser } from '../lib/types.ts';
import { logIn, register, toAnswer } from '../lib/users.ts';

export default class UsersController {
  static operations: Operations<UsersController> = {
    '*': { access: 'anyone' },
    POST: { status: 201 },
    'POST login': { limit: '1/s burst 50' },
  };

  async POST({ user }: { user: NewUser }): Promise<OneUser> {
    return toAnswer(await register(user));
  }

  async 'POST login'({ user }: { user: Login }): Promise<OneUser> {
    return toAnswer(await logIn(user));
  }
}
