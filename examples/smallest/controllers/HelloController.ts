// /api/hello
import type { ControllerParams } from 'gatefold';

interface Greeting {
  hello: string;
}

interface NewGreeting {
  /** @minLength 1 */
  name: string;
}

export default class HelloController {
  /** GET /api/hello */
  GET(): Greeting {
    return { hello: 'world' };
  }

  /** POST /api/hello */
  POST({ name }: NewGreeting): Greeting {
    return { hello: name };
  }

  /** GET /api/hello/Ada */
  'GET {name}'(_: undefined, { path: { name } }: ControllerParams<{ path: { name: string } }>): Greeting {
    return { hello: name };
  }
}
