// SDK mode: requests that carry a registered application's credential come here. A template to edit.
import type { ControllerParams } from 'gatefold';

const now = () => Math.floor(Date.now() / 1000);

export default class SdkController {
  /** Which application is calling. */
  index(_data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'The credential is valid', timestamp: now(), application: params.application };
  }

  created(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Resource created', timestamp: now(), data, params };
  }

  red(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Resource replaced', timestamp: now(), data, params };
  }

  updated(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Data updated', timestamp: now(), data, params };
  }

  deleted(data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'Resource deleted', timestamp: now(), data, params };
  }
}
