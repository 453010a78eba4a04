// The demonstration group at /api/test: for experiments with a client, and as an example of the shapes of JSON answers.
import type { ControllerParams } from 'gatefold';

const now = () => Math.floor(Date.now() / 1000);

export default class TestController {
  index() {
    return { status: 'success', message: 'The test group answers', timestamp: now(), greeting: 'Hello, world' };
  }

  hello() {
    return { ...this.index(), message: 'Hello from the test group' };
  }

  /** A normal result that looks like an error, for clients to try their error handling on. */
  error() {
    return { status: 'error', error_code: 'TEST_ERROR', message: 'This is what an error looks like', timestamp: now() };
  }

  created(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Resource created', timestamp: now(), data, params };
  }

  /** PUT; the name is no typo. */
  red(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Resource replaced', timestamp: now(), data, params };
  }

  /** Reached by its name alone, /api/test/updated: PATCH asks for `patch`, which this group does not have. */
  updated(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Data updated', timestamp: now(), data, params };
  }

  deleted(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Resource deleted', timestamp: now(), data, params };
  }
}
