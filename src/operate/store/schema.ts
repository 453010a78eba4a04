// The tables in PostgreSQL, and the statements on them. `gatefold store init` runs `SCHEMA`, which changes no existing
// table. The service itself needs only the rights to select, insert, update and delete.

/** The version of the tables, which is `v` of the row `version` of `head`. */
export const SCHEMA_VERSION = 1;

export const SCHEMA = `
create schema if not exists gatefold;

-- One row for each space (a part of the store), with the number of its latest change. A writer locks the row, so later
-- commits have larger numbers. "history" is an id that differs when the tables were made anew.
create table if not exists gatefold.head (
  space text primary key,
  v bigint not null,
  history uuid not null default gen_random_uuid()
);

-- "v" is the number of the latest change of the entry, "was" of the change before it, and "first" of its creation.
-- "value" is null when the entry was removed. "change" is the id of the latest write of the entry. A write that is
-- repeated because its answer was lost has the same id.
create table if not exists gatefold.entry (
  space text not null,
  name text not null,
  v bigint not null,
  was bigint not null,
  first bigint not null,
  value text,
  change text not null,
  changed_at timestamptz not null default now(),
  primary key (space, name)
);
create unique index if not exists entry_v on gatefold.entry (space, v);

-- After a crash or a failover, these two tables are empty: tokens are full, and machines report again within seconds.
create unlogged table if not exists gatefold.rate (
  caller text primary key,
  tokens float8 not null,
  at timestamptz not null,
  burst float8 not null,
  gain float8 not null
) with (fillfactor = 50);
create unlogged table if not exists gatefold.machine (
  id text primary key,
  name text not null,
  seen timestamptz not null
);

insert into gatefold.head (space, v) values ('keys', 0), ('secrets', 0), ('tasks', 0) on conflict do nothing;
-- Not a space: "v" is the version of these tables. Stores that were made before have no such row, and version 1.
insert into gatefold.head (space, v) values ('version', ${SCHEMA_VERSION})
  on conflict (space) do update set v = greatest(head.v, excluded.v);
`;

/**
 * The columns for the version of a space. PostgreSQL changes the timeline when a standby is promoted. The name of the
 * WAL file has the new timeline at once, but `pg_control_checkpoint` has it only after the next checkpoint.
 */
const VERSION_COLUMNS = `h.v::text as head, h.history::text as history,
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline,
  (select s.v::int from gatefold.head s where s.space = 'version') as schema`;

/** Bytes of the longest row that is read. A longer one could not arrive within the time limit of a query. */
export const MAX_VALUE_BYTES = 64 * 1024;
/**
 * A row that is too long is read as the empty text, which is no valid row. The state of many tasks can be longer, and
 * as the empty text it would free the lease on all machines.
 */
const ENTRY_COLUMNS = `e.name, e.v::text as v,
  case when h.space = 'keys' and octet_length(e.value) > ${MAX_VALUE_BYTES} then '' else e.value end as value`;

/** Bytes that a row needs in the table beside its text: a comma, the end of its line, and the time of a revocation. */
export const ROW_ROOM = 50;
/** Counts the rows of a space, and the bytes of its table. Parameter: $1 is the space. */
export const MEASURE = `select ${VERSION_COLUMNS}, count(e.value)::int as rows,
    coalesce(sum(case when octet_length(e.value) > ${MAX_VALUE_BYTES} then 0 else octet_length(e.value) end
      + ${ROW_ROOM}), 0)::float8 as bytes
  from gatefold.head h left join gatefold.entry e on e.space = h.space and e.value is not null
  where h.space = $1::text group by h.space`;

/** Reads all entries of a space, as they are at one moment. Parameter: $1 is the space. */
export const READ = `select ${VERSION_COLUMNS}, ${ENTRY_COLUMNS} from gatefold.head h
  left join gatefold.entry e on e.space = h.space and e.value is not null
  where h.space = $1::text order by e.first`;

/** Reads the named entries of a space. Parameters: $1 is the space, $2 the names as JSON. */
export const READ_NAMES = `select ${VERSION_COLUMNS}, ${ENTRY_COLUMNS} from gatefold.head h
  left join gatefold.entry e on e.space = h.space and e.value is not null
    and e.name in (select json_array_elements_text($2::text::json))
  where h.space = $1::text order by e.first`;

export const MAX_CHANGES = 5000;

/**
 * Reads the changes after a number. The lateral join reads one page by the index. A plain join would sort all pending
 * changes for each page. Parameters: $1 is the space, $2 the number of the last change that was read.
 */
export const SINCE = `select ${VERSION_COLUMNS}, ${ENTRY_COLUMNS} from gatefold.head h
  left join lateral (
    select name, v, value from gatefold.entry where space = $1::text and v > $2::text::bigint
    order by v limit ${MAX_CHANGES}
  ) e on true
  where h.space = $1::text order by e.v`;

/**
 * Writes changes. Parameters:
 * - $1 is the space.
 * - $2 is the list of changes as JSON: the "name", the "value", the expected version "is" (0 for a new entry), and "k",
 *   which counts the changes from 1.
 * - $3 is the number of changes.
 * - $4 is the id of the write.
 * - $5 is the number that the space must have, or null when any number is accepted.
 *
 * The update of `head` waits until no other write holds the row. Then a change is made only if its entry has the
 * expected version. If only some of several changes can be made, the statement divides by zero, and this error undoes
 * them. If a single change cannot be made, the returned "written" is 0.
 */
export const WRITE = `with h as (
    update gatefold.head set v = v + $3::text::bigint
    where space = $1::text and ($5::text is null or v = $5::text::bigint) returning v
  ), c as (
    insert into gatefold.entry as e (space, name, v, was, first, value, change)
    select $1::text, x.name, h.v - $3::text::bigint + x.k, x.is, h.v - $3::text::bigint + x.k, x.value, $4::text
    from h, json_to_recordset($2::text::json) as x(name text, k bigint, "is" bigint, value text)
    on conflict (space, name) do update
      set v = excluded.v, was = excluded.was, value = excluded.value, change = excluded.change, changed_at = now()
      where e.v = excluded.was
    returning e.v
  )
  select count(*)::int as written,
    case when count(*) = $3::text::bigint then pg_notify('gatefold', '')::text
      when $3::text::bigint > 1 and exists (select from h) then (1 / (count(*) - count(*)))::text end as bell
  from c`;

/** Counts the entries that a write changed. Parameters: $1 is the space, $2 the names as JSON, $3 the write. */
export const COUNT_WRITTEN = `select count(*)::int as written from gatefold.entry
  where space = $1::text and name in (select json_array_elements_text($2::text::json)) and change = $3::text`;

/**
 * Subtracts spent tokens from the rate limits of callers. A caller gets back "gain" tokens in a second, up to "burst".
 * Parameter: $1 is the list of spendings as JSON.
 * - The callers are sorted, so that two machines that report the same callers cannot deadlock.
 * - The tokens never fall below minus 100 bursts, so that a wrong report does not lock a caller out for ever.
 * - The inserted row has "burst - spent" tokens. The update computes the spent tokens from it.
 * - A statement that waited for another one has a slightly older time, so the later of the two times is kept. But when
 *   the clock of the database was set back by more than 5 s, the new time is used. Otherwise the caller would get no
 *   tokens until the clock reaches the old time again.
 */
export const SPEND = `insert into gatefold.rate as r (caller, tokens, at, burst, gain)
  select x.caller, greatest(-100 * x.burst, x.burst - x.spent), clock_timestamp(), x.burst, x.gain
  from json_to_recordset($1::text::json) as x(caller text, spent float8, burst float8, gain float8)
  order by x.caller
  on conflict (caller) do update set
    tokens = greatest(-100 * excluded.burst, least(excluded.burst, r.tokens
      + greatest(0, extract(epoch from excluded.at - r.at)::float8) * excluded.gain)
      - (excluded.burst - excluded.tokens)),
    at = case when excluded.at < r.at - interval '5 s' then excluded.at else greatest(r.at, excluded.at) end,
    burst = excluded.burst, gain = excluded.gain
  returning r.caller, r.tokens`;

/**
 * Removes the rows of callers that have all their tokens again. Such a row has the same effect as no row. Also removes
 * values of `by` beyond a number, those first that have not called for longest, because clients can make up any number
 * of values. Parameter: $1 is the number.
 */
export const SWEEP_RATES = `with v as materialized (select at from gatefold.rate where caller like 'by %')
  delete from gatefold.rate
  where tokens + extract(epoch from clock_timestamp() - at)::float8 * gain >= burst
    or caller like 'by %' and at <= case when (select count(*) from v) > $1::text::bigint
      then (select at from v order by at desc offset $1::text::bigint limit 1) end`;
/** Each row takes some 300 bytes. A sweep of a million took 2 s, on the connection whose other queries have 2 s. */
export const MAX_STORED_VALUES = 200_000;

/**
 * Reports that a machine is alive. Returns the number of machines that have reported in the last 15 s, and the time of
 * the store in seconds. When the clock of the database was set back, earlier reports are in the future. Such a report
 * counts if it is at most 15 s ahead. Parameters: $1 is the id of the machine, $2 its name.
 */
export const REPORT_MACHINE = `with m as (
    insert into gatefold.machine (id, name, seen) values ($1::text, $2::text, clock_timestamp())
    on conflict (id) do update set name = excluded.name, seen = excluded.seen
  ), old as (delete from gatefold.machine where seen < clock_timestamp() - interval '1 day' and id <> $1::text)
  select 1 + count(*)::int as machines, extract(epoch from clock_timestamp())::float8 as clock from gatefold.machine
  where id <> $1::text and abs(extract(epoch from clock_timestamp() - seen)) < 15`;
