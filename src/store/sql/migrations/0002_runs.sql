-- Runs, what they hold and who works on them. The rules of 0001 apply. `bigserial` is a number that
-- the database counts. Rows point at each other across these tables without foreign keys, because
-- each is history of its own; only the company owns them all.

create table heartbeat_runs (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  agent_id text references agents (id) on delete set null,
  environment_id text references environments (id) on delete set null,
  lease_id text,
  node_id text,
  invocation_source text not null,
  trigger_detail text,
  status text not null,
  command text,
  environment_choice text,
  phases text not null,
  error text,
  error_code text,
  exit_code bigint,
  signal text,
  usage_json text,
  result_json text,
  session_id_before text,
  session_id_after text,
  log_bytes bigint not null,
  log_sha256 text,
  stdout_excerpt text,
  stderr_excerpt text,
  process_pid bigint,
  process_group_id bigint,
  process_started_at bigint,
  last_output_at bigint,
  last_output_seq bigint not null,
  retry_of_run_id text,
  context_snapshot text not null,
  cancel_requested_at bigint,
  started_at bigint,
  finished_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create index heartbeat_runs_by_time on heartbeat_runs (company_id, created_at, id);
create index heartbeat_runs_by_status on heartbeat_runs (company_id, status, created_at, id);
create index heartbeat_runs_by_agent on heartbeat_runs (agent_id, created_at, id);
create index heartbeat_runs_by_environment on heartbeat_runs (environment_id, created_at, id);
-- The indexes below hold only what waits or works, so that history does not slow them.
create index heartbeat_runs_queued on heartbeat_runs (created_at, id) where status = 'queued';
create index heartbeat_runs_queued_by_agent on heartbeat_runs (agent_id, created_at, id)
  where status = 'queued';
create index heartbeat_runs_queued_by_environment on heartbeat_runs (environment_id, created_at, id)
  where status = 'queued';
create index heartbeat_runs_working on heartbeat_runs (node_id, created_at, id)
  where status in ('starting', 'running');

create index heartbeat_runs_load on heartbeat_runs (agent_id, environment_id)
  where status in ('starting', 'running');

create table heartbeat_run_inputs (
  run_id text not null primary key references heartbeat_runs (id) on delete cascade,
  key_id text not null,
  material text not null,
  version bigint not null
);

create table heartbeat_run_redactions (
  run_id text not null references heartbeat_runs (id) on delete cascade,
  secret_id text not null references company_secrets (id) on delete cascade,
  secret_version bigint not null,
  hidden_by text,
  version bigint not null,
  primary key (run_id, secret_id, secret_version)
);
create index heartbeat_run_redactions_by_secret on heartbeat_run_redactions (secret_id);

-- Events go with their run, which goes with its company.
create table heartbeat_run_events (
  id bigserial primary key,
  company_id text not null,
  run_id text not null references heartbeat_runs (id) on delete cascade,
  agent_id text,
  seq bigint not null,
  event_type text not null,
  stream text not null,
  level text not null,
  message text not null,
  payload text,
  created_at bigint not null
);
create unique index heartbeat_run_events_run_id_seq on heartbeat_run_events (run_id, seq);

create table sandboxes (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  environment_id text references environments (id) on delete set null,
  agent_id text,
  execution_workspace_id text,
  lease_id text,
  node_id text,
  provider text not null,
  plugin_id text,
  plugin_version text,
  config text not null,
  provider_lease_id text,
  fingerprint text not null,
  status text not null,
  metadata text not null,
  failure_reason text,
  attempts bigint not null,
  next_attempt_at bigint,
  parked_at bigint,
  expires_at bigint,
  last_used_at bigint not null,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create index sandboxes_by_time on sandboxes (company_id, created_at, id);
create index sandboxes_by_status on sandboxes (company_id, status, created_at, id);
create index sandboxes_by_environment on sandboxes (environment_id, created_at, id);
create index sandboxes_idle on sandboxes (company_id, fingerprint, last_used_at, id)
  where status = 'idle' and parked_at is null;
create index sandboxes_due on sandboxes (next_attempt_at, id)
  where parked_at is null and status in ('creating', 'idle', 'leased', 'destroying');
create index sandboxes_by_node on sandboxes (node_id)
  where status in ('creating', 'idle', 'leased', 'destroying');

-- A node's `version` is that of its program. Its row needs no other: fenced_at is set once, and
-- everything that writes asks for it.
create table nodes (
  id text not null primary key,
  name text not null,
  version text not null,
  started_at bigint not null,
  heartbeat_at bigint not null,
  fenced_at bigint
);
create index nodes_alive on nodes (heartbeat_at, id) where fenced_at is null;

alter table environment_leases add column sandbox_id text;
alter table environment_leases add column node_id text;
alter table environment_leases add column driver text not null default 'local';
alter table environment_leases add column teardown text not null default '{"config":{}}';
alter table environment_leases add column release_event text;
alter table environment_leases add column attempts bigint not null default 0;
alter table environment_leases add column next_attempt_at bigint;
alter table environment_leases add column parked_at bigint;
alter table environment_leases add column claimed_by text;
alter table environment_leases add column claimed_until bigint;
create index environment_leases_claimed on environment_leases (claimed_by)
  where claimed_by is not null;
create unique index environment_leases_sandbox_id on environment_leases (sandbox_id)
  where status in ('acquiring', 'active', 'releasing', 'retained', 'pending_cleanup');
create unique index environment_leases_heartbeat_run_id on environment_leases (heartbeat_run_id)
  where status in ('acquiring', 'active', 'releasing');
create index environment_leases_by_run on environment_leases (heartbeat_run_id, created_at, id);
create index environment_leases_by_company_time
  on environment_leases (company_id, last_used_at, id);
create index environment_leases_by_company_status
  on environment_leases (company_id, status, last_used_at, id);
create index environment_leases_parked on environment_leases (company_id, last_used_at, id)
  where parked_at is not null;
create index environment_leases_due on environment_leases (next_attempt_at, id)
  where parked_at is null
  and status in ('acquiring', 'active', 'releasing', 'retained', 'pending_cleanup');
create index environment_leases_by_node on environment_leases (node_id)
  where status in ('acquiring', 'active', 'releasing', 'retained', 'pending_cleanup');
drop index environment_leases_by_company;
