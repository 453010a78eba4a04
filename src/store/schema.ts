// The tables in PostgreSQL, and the statements on them. `gatefold store init` runs `SCHEMA`, which changes no existing
// table. To serve requests, the database user needs the rights to select, insert, update and delete.

export const SCHEMA = `
create schema if not exists gatefold;

-- One row for each space (a part of the store). A writer locks the row, so later commits have larger numbers.
create table if not exists gatefold.head (
  space text primary key,
  v bigint not null,
  history uuid not null default gen_random_uuid()
);

-- "v" is the number of the latest change of the entry, "was" of the change before it, and "first" of its creation.
-- "change" is the id of the write. A write that is repeated because its answer was lost has the same id.
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

insert into gatefold.head (space, v) values ('keys', 0), ('secrets', 0) on conflict do nothing;
`;

/**
 * The columns for the version of a space. One of them is the timeline, which PostgreSQL changes when a standby is
 * promoted. `pg_walfile_name` shows the new timeline at once; `pg_control_checkpoint` shows it late.
 */
const VERSION_COLUMNS = `h.v::text as head, h.history::text as history,
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline`;
const ENTRY_COLUMNS = 'e.name, e.v::text as v, e.value';

/** Reads all entries of a space. A single statement sees the data of one moment. Parameter: $1 is the space. */
export const READ = `select ${VERSION_COLUMNS}, ${ENTRY_COLUMNS} from gatefold.head h
  left join gatefold.entry e on e.space = h.space and e.value is not null
  where h.space = $1::text order by e.first`;

/** Reads the named entries of a space. Parameters: $1 is the space, $2 the names as JSON. */
export const READ_NAMES = `select ${VERSION_COLUMNS}, ${ENTRY_COLUMNS} from gatefold.head h
  left join gatefold.entry e on e.space = h.space and e.value is not null
    and e.name in (select json_array_elements_text($2::text::json))
  where h.space = $1::text order by e.first`;

/** A query for changes returns at most this many changes. */
export const MAX_CHANGES = 5000;

/** Reads the changes since a number. Parameters: $1 is the space, $2 the number that the reader has. */
export const SINCE = `select ${VERSION_COLUMNS}, ${ENTRY_COLUMNS} from gatefold.head h
  left join gatefold.entry e on e.space = h.space and e.v > $2::text::bigint
  where h.space = $1::text order by e.v limit ${MAX_CHANGES}`;

/**
 * Writes changes. Parameters:
 * - $1 is the space.
 * - $2 is the list of changes as JSON.
 * - $3 is the number of changes.
 * - $4 is the id of the write.
 * - $5 is the number that the space must have, or null when any number is accepted.
 *
 * The update of `head` waits until no other write holds the row. Then each entry is checked: a change is made only if
 * the entry has the expected version. If some of several changes are not made, the statement divides by zero, and this
 * error undoes the other changes.
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
  select (select v from h)::text as v, count(*)::int as written,
    case when count(*) = $3::text::bigint then pg_notify('gatefold', $1::text || ' ' || (select v from h))::text
      when $3::text::bigint > 1 and exists (select from h) then (1 / (count(*) - count(*)))::text end as bell
  from c`;

/**
 * Counts the named entries whose last change has the id of a write. Parameters: $1 is the space, $2 the names as JSON,
 * $3 the id.
 */
export const COUNT_WRITTEN = `select count(*)::int as written from gatefold.entry
  where space = $1::text and name in (select json_array_elements_text($2::text::json)) and change = $3::text`;

/**
 * Subtracts the spent tokens from the buckets of callers. Parameter: $1 is the list of spendings as JSON.
 * - The callers are sorted, so that two machines that report the same callers cannot deadlock.
 * - The tokens never fall below minus two bursts, so that a wrong report locks no caller out for long.
 * - The row to insert has "burst - spent" tokens. The update computes the spent tokens from it.
 * - A statement that waited for another one has a slightly older time, so the later time of both is kept. But when the
 *   clock of the database was set back by more than 5 s, its time is used. Otherwise the bucket would get no tokens
 *   until the clock reaches the old time again.
 */
export const SPEND = `insert into gatefold.rate as r (caller, tokens, at, burst, gain)
  select x.caller, greatest(-2 * x.burst, x.burst - x.spent), clock_timestamp(), x.burst, x.gain
  from json_to_recordset($1::text::json) as x(caller text, spent float8, burst float8, gain float8)
  order by x.caller
  on conflict (caller) do update set
    tokens = greatest(-2 * excluded.burst, least(excluded.burst, r.tokens
      + greatest(0, extract(epoch from excluded.at - r.at)::float8) * excluded.gain)
      - (excluded.burst - excluded.tokens)),
    at = case when excluded.at < r.at - interval '5 s' then excluded.at else greatest(r.at, excluded.at) end,
    burst = excluded.burst, gain = excluded.gain
  returning r.caller, r.tokens`;

/** Removes the buckets that have all their tokens again, because such a bucket has the same effect as none. */
export const SWEEP_RATES = `delete from gatefold.rate
  where tokens + extract(epoch from clock_timestamp() - at)::float8 * gain >= burst`;

/**
 * Reports that a machine is alive, and returns how many machines have reported in the last 15 s. After the
 * clock of the database was set back, reports can be in the future. They count only up to 15 s ahead. Parameters: $1 is
 * the id of the machine, $2 its name.
 */
export const REPORT_MACHINE = `with m as (
    insert into gatefold.machine (id, name, seen) values ($1::text, $2::text, clock_timestamp())
    on conflict (id) do update set name = excluded.name, seen = excluded.seen
  ), old as (delete from gatefold.machine where seen < clock_timestamp() - interval '1 day' and id <> $1::text)
  select 1 + count(*)::int as machines from gatefold.machine
  where id <> $1::text and abs(extract(epoch from clock_timestamp() - seen)) < 15`;
