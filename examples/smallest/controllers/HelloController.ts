// The handler group at /api/hello.
import type { ControllerParams } from 'gatefold';

interface Greeting {
  /** @minLength 1 */
  name: string;
}

export default class HelloController {
  /** GET /api/hello */
  index() {
    return { hello: 'world' };
  }

  /** POST /api/hello */
  created(greeting: Greeting) {
    return { hello: greeting.name };
  }

  /** GET /api/hello/to/Ada */
  to(_data: unknown, { slugs }: ControllerParams) {
    return { hello: slugs[1] };
  }
}
