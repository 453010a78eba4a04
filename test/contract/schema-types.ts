// Compiled, never run: tsc refuses a schema in `static operations` that does not make what the operation takes.
import type { Operations, StandardSchema } from '../../src/controller.ts';

interface NewUser {
  name: string;
}
declare const user: StandardSchema<{ name: string }, NewUser>;
declare const other: StandardSchema<{ age: string }, { age: number }>;

export class UserController {
  static operations: Operations<UserController> = { created: { body: user, status: 201 }, index: { query: other }, '*': { timeout: 5000 } };
  created(data: NewUser) {
    return data;
  }
  index() {
    return [];
  }
}

export class WrongController {
  static operations: Operations<WrongController> = {
    // @ts-expect-error it makes an age, and the operation takes a name
    created: { body: other },
  };
  created(data: NewUser) {
    return data;
  }
}

export class MisspeltController {
  static operations: Operations<MisspeltController> = {
    // @ts-expect-error there is no such operation
    createt: { body: user },
  };
  created(data: NewUser) {
    return data;
  }
}
