// The handler group at /api/hello.
import type { ControllerParams } from 'gatefold';

interface Greeting {
  /** @minLength 1 */
  name: string;
}

export default class HelloController {
  /** GET /api/hello */
  'GET'() {
    return { hello: 'world' };
  }

  /** POST /api/hello */
  'POST'(greeting: Greeting) {
    return { hello: greeting.name };
  }

  /** GET /api/hello/to/Ada */
  'GET to/{name}'(_: unknown, { path }: ControllerParams<{ path: { name: string } }>) {
    return { hello: path.name };
  }
}
