create table users (
  id integer generated always as identity primary key,
  username text not null constraint username unique,
  email text not null,
  password text not null,
  bio text,
  image text
);
create unique index email on users (lower(email));

create table follows (
  follower integer not null references users on delete cascade,
  followed integer not null references users on delete cascade,
  primary key (follower, followed)
);

create table articles (
  id integer generated always as identity primary key,
  author integer not null references users on delete cascade,
  slug text not null constraint slug unique,
  title text not null,
  description text not null,
  body text not null,
  tag_list text[] not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index on articles (author);
create index on articles (created_at);
create index on articles using gin (tag_list);

create table favorites (
  article integer not null references articles on delete cascade,
  reader integer not null references users on delete cascade,
  primary key (article, reader)
);
create index on favorites (reader);

create table comments (
  id integer generated always as identity primary key,
  article integer not null references articles on delete cascade,
  author integer not null references users on delete cascade,
  body text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index on comments (article);
