// Writes the error answers of the OpenAPI document. Their bodies have Gatefold's own form, or the form that
// `formatError` of the service file gives them.
import type { Definitions, Schema } from '../contract/contract.ts';
import type { Components } from './components.ts';
import type { DocumentedService } from './documented.ts';

export const ENVELOPE_SCHEMAS: Definitions = {
  Error: {
    type: 'object',
    description: 'Every error has this shape.',
    properties: {
      status: { const: 'error' },
      error_code: { type: 'string', examples: ['GROUP_NOT_FOUND'] },
      message: { type: 'string' },
      timestamp: { type: 'integer', description: 'Unix time in seconds.' },
      request_id: { type: 'string', description: 'The id of the request in the log of the service.' },
      errors: { type: 'array', items: { $ref: '#/components/schemas/FieldError' } },
    },
    required: ['status', 'error_code', 'message', 'timestamp', 'request_id'],
  },
  FieldError: {
    type: 'object',
    properties: {
      in: { enum: ['body', 'query', 'path', 'header'] },
      pointer: { type: 'string', description: 'A JSON pointer (RFC 6901); empty: the part itself.' },
      message: { type: 'string' },
      code: {
        type: 'string',
        description: 'The keyword of JSON Schema that the value breaks.',
        examples: ['minLength'],
      },
      params: { type: 'object', description: 'The values in the message.', examples: [{ limit: 3 }] },
    },
    required: ['pointer', 'message'],
  },
};

const DESCRIPTIONS = {
  Refused: 'Refused, or failed',
  InvalidData: 'The data is not valid: errors names each wrong field',
  CredentialRequired: 'The credential is missing or not valid',
  UserRequired: 'No user is signed in, or the credential is missing or not valid',
  ScopeMissing: 'The credential lacks a scope that the operation requires',
  PreconditionFailed: 'The entity tag of If-Match is not the current one',
  PreconditionRequired: 'The header If-Match is required',
  AccessDenied: 'The caller may not call the operation',
};

const CUSTOM_FORMAT = 'The service formats its errors itself, and may send another status';
const CUSTOM_DESCRIPTIONS = {
  ...DESCRIPTIONS,
  Refused: `${DESCRIPTIONS.Refused}. ${CUSTOM_FORMAT}`,
  InvalidData: `The data is not valid. ${CUSTOM_FORMAT}`,
};

export function writeRefusals(service: DocumentedService | undefined, components: Components) {
  if (service?.formatError === undefined) {
    const schema = { $ref: '#/components/schemas/Error' };
    return { schemas: ENVELOPE_SCHEMAS, responses: responsesOf(DESCRIPTIONS, 'application/json', schema) };
  }
  const { schema = {}, defs } = service.errorBody;
  // No group can have this name, because of its dot.
  const published = components.publish({ groupInUrl: 'service.error', defs }, schema);
  return { schemas: {}, responses: responsesOf(CUSTOM_DESCRIPTIONS, mediaTypeOf(service.formatError), published) };
}

function responsesOf(descriptions: typeof DESCRIPTIONS, type: string, schema: Schema) {
  const describe = ([name, description]: [string, string]) => [name, { description, content: { [type]: { schema } } }];
  return Object.fromEntries(Object.entries(descriptions).map(describe)) as Record<keyof typeof DESCRIPTIONS, object>;
}

/** Finds the media type in the source text of `formatError`, because the document must not call the function. */
function mediaTypeOf(format: NonNullable<DocumentedService['formatError']>): string {
  const [, type] = /content-type['"`]?\s*:\s*['"`]([\w.+-]+\/[\w.+-]+)/i.exec(String(format)) ?? [];
  return type?.toLowerCase() ?? 'application/json';
}
