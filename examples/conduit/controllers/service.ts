// The rules of all controllers: who calls, who may, how a refusal looks, and how a worker ends.
import { defineService, ErrorReply } from 'gatefold';
import { isAway, isUnstorable, sql } from '../lib/database.ts';
import type { User } from '../lib/types.ts';
import { userOfToken } from '../lib/users.ts';

interface Errors {
  errors: { body: string[] };
}

export default defineService<User>({
  strict: true,
  unchecked: 'refuse',
  access: 'user',
  authenticate: ({ authorization }) => userOfToken(authorization),
  securitySchemes: {
    Token: { type: 'apiKey', in: 'header', name: 'Authorization', description: 'Token jwt.token.here' },
  },
  cors: { origins: process.env.ORIGINS?.split(',') ?? '*' },
  formatError({ message, errors = [{ pointer: '', message }], cause }): Errors | ErrorReply<Errors> {
    if (isAway(cause)) return new ErrorReply(503, inFormat('the database is away'), { 'Retry-After': '2' });
    if (isUnstorable(cause)) return new ErrorReply(422, inFormat('a value cannot be stored'));
    return inFormat(
      ...errors.map(({ pointer, message }) => `${pointer.slice(1).replaceAll('/', '.')} ${message}`.trim()),
    );
  },
  close: () => sql.end({ timeout: 4 }),
});

function inFormat(...body: string[]): Errors {
  return { errors: { body } };
}
