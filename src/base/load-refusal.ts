// The errors that keep a controller or the service file from loading. A code stays when its messages change, so that
// logs can be searched for it. docs/ERRORS.md explains the codes.
export const LOAD_ERROR_CODES = [
  'IMPORT_FAILED',
  'INVALID_EXPORT',
  'INVALID_GUARD',
  'INVALID_ROUTE',
  'INVALID_SERVICE_FILE',
  'INVALID_SETTING',
  'LOAD_CRASHED',
  'LOAD_TIMEOUT',
  'SYNTAX_ERROR',
  'TAG_WITHOUT_EFFECT',
  'UNREAD_OPERATION',
  'UNREAD_TYPE',
] as const;
export type LoadErrorCode = (typeof LOAD_ERROR_CODES)[number];

export class LoadRefusal extends Error {
  readonly code: LoadErrorCode;
  /** @param message one line that says what is wrong and what to do */
  constructor(code: LoadErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
