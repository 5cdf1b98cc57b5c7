-- What an agent keeps between its runs in one environment: a folder on the disk of a server, or an
-- account of a host, and the session that its next turn goes on with. The row goes first; a folder
-- without a row is removed by the server that has it.

create table agent_homes (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  agent_id text not null references agents (id) on delete cascade,
  environment_id text not null references environments (id) on delete cascade,
  place text not null,
  session_id text,
  session_adapter text,
  bytes bigint not null,
  files bigint not null,
  used_at bigint not null,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create unique index agent_homes_of_agent on agent_homes (agent_id, environment_id, place);
create index agent_homes_by_company on agent_homes (company_id, bytes);
create index agent_homes_by_environment on agent_homes (environment_id);
