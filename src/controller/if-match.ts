// `If-Match` (RFC 9110, 13.1.1): a change that is refused when somebody else has changed the thing meanwhile.

import { parseEntityTags } from '../base/entity-tags.ts';
import { refusal } from '../base/errors.ts';
import type { ControllerParams } from '../controller.ts';

export interface IfMatchOptions {
  /** A request without the header is refused, too: 428. Default: it is let through. */
  readonly required?: boolean;
}

/**
 * Call it before the change is made.
 *
 * @param etag of the thing as it is now, with its quotes, as the `ETag` of its answers; undefined: there is no such
 *   thing
 * @throws HttpError PRECONDITION_FAILED (412) when the header names another one, PRECONDITION_REQUIRED (428) when it is
 *   required
 *   and absent, MALFORMED_REQUEST (400) when it is no list of entity tags
 */
export function ifMatch(
  params: Pick<ControllerParams, 'request'>,
  etag: string | undefined,
  { required = false }: IfMatchOptions = {},
): void {
  const header = params.request.headers['if-match'];
  if (etag !== undefined && parseEntityTags(etag)?.length !== 1)
    throw new TypeError(`ifMatch: ${JSON.stringify(etag)} is no entity tag, such as "7"`);
  if (header === undefined) {
    if (required) throw refusal('PRECONDITION_REQUIRED');
    return;
  }
  const tags = parseEntityTags(header);
  if (tags === undefined) throw refusal('MALFORMED_REQUEST', 'Cannot read If-Match: it is no list of entity tags');
  // Strong comparison: a weak tag is equal to none.
  const matches = etag !== undefined && (tags === '*' || (!etag.startsWith('W/') && tags.includes(etag)));
  if (!matches) throw refusal('PRECONDITION_FAILED');
}
