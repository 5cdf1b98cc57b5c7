-- Who answers for a run: the operator who started it, or who started the run or made the key from
-- which it was started. And the name that its caller gave to it, under which the newest is found.

alter table heartbeat_runs add column responsible_user_id text;
alter table heartbeat_runs add column name text;
alter table tokens add column created_by text;

create index heartbeat_runs_by_name on heartbeat_runs (company_id, name, created_at, id)
  where name is not null;
