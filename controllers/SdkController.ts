// SDK mode: requests that carry a registered application's credential come here. A template to edit.
import { type CallingApplication, type ControllerParams, HttpError } from 'gatefold';

const now = () => Math.floor(Date.now() / 1000);

/** A request to /api/sdk reaches this group without a credential, too, so each operation must check the caller. */
function callerOf(params: ControllerParams): CallingApplication {
  if (params.application === undefined)
    throw new HttpError(401, 'CREDENTIAL_REQUIRED', 'Send the credential of a registered application');
  return params.application;
}

export default class SdkController {
  /** Returns the calling application. */
  index(_data: unknown, params: ControllerParams) {
    return { status: 'success', message: 'The credential is valid', timestamp: now(), application: callerOf(params) };
  }

  created(data: unknown, params: ControllerParams) {
    callerOf(params);
    return { status: 'success', message: 'Resource created', timestamp: now(), data, params };
  }

  red(data: unknown, params: ControllerParams) {
    callerOf(params);
    return { status: 'success', message: 'Resource replaced', timestamp: now(), data, params };
  }

  updated(data: unknown, params: ControllerParams) {
    callerOf(params);
    return { status: 'success', message: 'Data updated', timestamp: now(), data, params };
  }

  deleted(data: unknown, params: ControllerParams) {
    callerOf(params);
    return { status: 'success', message: 'Resource deleted', timestamp: now(), data, params };
  }
}
