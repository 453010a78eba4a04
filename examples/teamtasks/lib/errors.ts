// The errors of the service in the language of the reader: English, or German.
import { ErrorReply, type Refusal } from 'gatefold';
import { isAway, isUnstorable } from './database.ts';

export interface Problem {
  code: string;
  message: string;
  fields: { pointer: string; message: string }[];
}

const GERMAN: Readonly<Record<string, string>> = {
  // of this service
  TEAM_NOT_FOUND: 'Dieses Team gibt es nicht',
  PROJECT_NOT_FOUND: 'Dieses Projekt gibt es nicht',
  TASK_NOT_FOUND: 'Diese Aufgabe gibt es nicht',
  USER_NOT_FOUND: 'Niemand hat diese Adresse',
  ROLE: 'Ihre Rolle im Team erlaubt das nicht',
  CHANGED: 'Jemand hat die Aufgabe inzwischen geändert',
  NO_SEAT: 'Das Team hat keinen Platz mehr',
  // of Gatefold
  USER_REQUIRED: 'Bitte melden Sie sich an',
  INVALID_DATA: 'Bitte prüfen Sie Ihre Angaben',
  RATE_LIMITED: 'Bitte warten Sie einen Augenblick',
  // of a field
  required: 'fehlt',
  type: 'hat den falschen Typ',
  minLength: 'ist zu kurz',
  maxLength: 'ist zu lang',
  enum: 'ist keiner der erlaubten Werte',
  library: 'ist nicht gültig',
};

export function formatError({ code, message, errors = [], request, cause }: Refusal): Problem | ErrorReply<Problem> {
  if (isAway(cause))
    return new ErrorReply(503, { code: 'AWAY', message: 'The database is away', fields: [] }, { 'Retry-After': '2' });
  if (isUnstorable(cause))
    return new ErrorReply(422, { code: 'UNSTORABLE', message: 'A value cannot be stored', fields: [] });
  const texts = request?.headers['accept-language']?.startsWith('de') ? GERMAN : {};
  return {
    code,
    message: texts[code] ?? message,
    fields: errors.map((error) => ({ pointer: error.pointer, message: texts[error.code ?? ''] ?? error.message })),
  };
}
