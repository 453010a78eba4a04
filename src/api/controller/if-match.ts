// Checks the header `If-Match` (RFC 9110, 13.1.1), so that a client changes a resource only as the client has read it.
import { parseEntityTags } from '../../base/entity-tags.ts';
import { refusal } from '../../base/errors.ts';
import type { ControllerParams } from '../controller.ts';

export interface IfMatchOptions {
  /** Whether a request without the header is refused with 428; default: `false`. */
  readonly required?: boolean;
}

/**
 * Checks `If-Match`. An operation calls this function before it changes the resource.
 *
 * @param etag the current entity tag of the resource, with its quotes, as answers send it in the header `ETag`;
 *   undefined when the resource does not exist
 * @throws HttpError PRECONDITION_FAILED (412) when the header does not list this tag, PRECONDITION_REQUIRED (428) when
 *   the header is required and absent, MALFORMED_REQUEST (400) when the header is not a list of entity tags
 * @throws TypeError when `etag` is not an entity tag
 */
export function ifMatch(
  params: Pick<ControllerParams, 'request'>,
  etag: string | undefined,
  { required = false }: IfMatchOptions = {},
): void {
  const header = params.request.headers['if-match'];
  if (etag !== undefined && parseEntityTags(etag)?.length !== 1)
    throw new TypeError(`ifMatch: ${JSON.stringify(etag)} is not an entity tag: write it with its quotes, like "7"`);
  if (header === undefined) {
    if (required) throw refusal('PRECONDITION_REQUIRED');
    return;
  }
  const tags = parseEntityTags(header);
  if (tags === undefined) throw refusal('MALFORMED_REQUEST', 'Cannot read If-Match: it is not a list of entity tags');
  // The strong comparison of RFC 9110: a weak tag (`W/"7"`) never matches. `*` matches any resource that exists.
  const matches = etag !== undefined && (tags === '*' || (!etag.startsWith('W/') && tags.includes(etag)));
  if (!matches) throw refusal('PRECONDITION_FAILED');
}
