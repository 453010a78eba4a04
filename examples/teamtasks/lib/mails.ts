// Mails are jobs of pg-boss: the answer does not wait for them, and one that fails is tried again.
import { createTransport } from 'nodemailer';
import PgBoss from 'pg-boss';
import { client, DATABASE_URL } from './database.ts';

export interface Mail {
  to: string;
  subject: string;
  text: string;
}

// The sender adds rows by the pool of the worker, and needs no start. Drizzle leaves JSON to the caller.
const toText = (value: unknown) => (value?.constructor === Object ? JSON.stringify(value) : value);
const sender = new PgBoss({
  db: { executeSql: async (text, values) => ({ rows: await client.unsafe(text, values.map(toText) as never[]) }) },
});

export async function sendLater(mail: Mail): Promise<void> {
  await sender.send('mail', mail, { retryLimit: 10, retryDelay: 1, retryBackoff: true });
}

/** Sends mails until the signal is aborted. */
export async function sendMails(signal: AbortSignal): Promise<void> {
  const transport = createTransport(process.env.SMTP_URL ?? 'smtp://localhost:25');
  const boss = new PgBoss(DATABASE_URL);
  boss.on('error', console.error);
  await boss.start();
  await boss.work<Mail>('mail', { pollingIntervalSeconds: 0.5 }, async ([job]) => {
    await transport.sendMail({ from: process.env.MAIL_FROM ?? 'teamtasks@localhost', ...job?.data });
  });
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  await boss.stop({ graceful: true, timeout: 20_000 });
}
