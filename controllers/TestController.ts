// The demonstration group at /api/test, for experiments with a client. It shows the shapes of JSON answers.
import type { ControllerParams } from 'gatefold';

const now = () => Math.floor(Date.now() / 1000);

export default class TestController {
  index() {
    return { status: 'success', message: 'The test group answers', timestamp: now(), greeting: 'Hello, world' };
  }

  hello() {
    return { ...this.index(), message: 'Hello from the test group' };
  }

  /** A normal result that looks like an error, so that clients can try their error handling. */
  error() {
    return { status: 'error', error_code: 'TEST_ERROR', message: 'This is what an error looks like', timestamp: now() };
  }

  created(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Resource created', timestamp: now(), data, params };
  }

  /** Answers PUT. The name is that of the reference, and no typo. */
  red(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Resource replaced', timestamp: now(), data, params };
  }

  /** Answers only at /api/test/updated. PATCH without a name calls `patch`, which this group does not have. */
  updated(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Data updated', timestamp: now(), data, params };
  }

  deleted(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Resource deleted', timestamp: now(), data, params };
  }
}
