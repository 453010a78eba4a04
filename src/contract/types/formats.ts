// Checks the formats of strings, such as `email`, in a time that is at most proportional to the length of the string.

/** A time with its offset from UTC (RFC 3339): `10:00:00Z`, `10:00:00+02:00`. */
const ZONED_TIME = /^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;
const EMAIL_NAME = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/;
const HOST_LABEL = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i;
const IPV4 = /^(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/;
/** Matches a host that no DNS has. Node 20 and 22 sort the accents in a host, which takes 30 s for half a megabyte. */
const LONG_HOST = /^(?:https?|wss?|ftp|file):[\\/]*(?:[^\\/?#]*@|(?![^\\/?#]*@))[^\\/?#@]{300}/i;

export const FORMATS: Readonly<Record<string, (text: string) => boolean>> = Object.assign(Object.create(null), {
  email: isEmail,
  uuid: (text: string) => /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i.test(text),
  date: isDate,
  'date-time': (text: string) => /^.{10}t/i.test(text) && isDate(text.slice(0, 10)) && ZONED_TIME.test(text.slice(11)),
  time: (text: string) => ZONED_TIME.test(text),
  uri: (text: string) => /^[a-z][a-z\d+.-]*:\S*$/i.test(text) && !LONG_HOST.test(text) && URL.canParse(text),
  ipv4: (text: string) => IPV4.test(text),
  hostname: isHostname,
});

/** Whether `{ [id: number]: T }` includes a field with this name: yes for `7` and `-1.5`, no for `07`. */
export const isNumberName = (name: string): boolean => String(Number(name)) === name;

/** An address as in RFC 5321: at most 64 characters before the `@`, and 254 in all. */
function isEmail(text: string): boolean {
  const nameLength = text.lastIndexOf('@');
  if (text.length > 254 || nameLength < 1 || nameLength > 64) return false;
  const host = text.slice(nameLength + 1);
  return EMAIL_NAME.test(text.slice(0, nameLength)) && host.includes('.') && isHostname(host);
}

/** A name as in RFC 1123: labels of at most 63 characters, and 253 in all. */
function isHostname(text: string): boolean {
  return text.length <= 253 && text.split('.').every((label) => HOST_LABEL.test(label));
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  // `Date.UTC` takes the year 99 for 1999. The calendar repeats every 400 years, so the same day is looked up in a year
  // from 2000 to 2399. Day 0 of the next month is the last day of this month.
  const year = 2000 + (Number(text.slice(0, 4)) % 400);
  const month = Number(text.slice(5, 7));
  const day = Number(text.slice(8));
  return month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}
