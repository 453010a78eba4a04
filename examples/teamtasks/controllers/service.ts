// The rules of all controllers: who calls, who may, how a refusal looks, and the work without a request.
import { defineService, mount } from 'gatefold';
import { type User, userOf } from '../lib/auth.ts';
import { client } from '../lib/database.ts';
import { formatError } from '../lib/errors.ts';
import { sendMails } from '../lib/mails.ts';
import { reportDay } from '../lib/report.ts';
import { old } from '../old/application.ts';

export default defineService<User>({
  strict: true,
  unchecked: 'refuse',
  results: 'declared',
  access: 'user',
  authenticate: userOf,
  securitySchemes: { session: { type: 'apiKey', in: 'cookie', name: 'better-auth.session_token' } },
  formatError,
  fallback: mount.node(old, { access: 'anyone', unchecked: true }),
  public: { headers: () => ({ 'Content-Security-Policy': "default-src 'self'; style-src 'self' 'unsafe-inline'" }) },
  background: {
    mails: ({ signal }) => sendMails(signal),
    report: { at: '03:00', run: ({ dueAt }) => reportDay(dueAt) },
  },
  close: () => client.end({ timeout: 4 }),
});
