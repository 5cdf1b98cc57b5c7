-- One text for both engines. A table has the columns of its described struct and `version`.
-- Times and booleans are bigint, ids, enums and JSON are text. A statement ends with a semicolon
-- at the end of a line. A unique index that a verb asks about is named <table>_<columns>, because
-- SQLite reports the columns of a violated index and PostgreSQL its name.

create table companies (
  id text not null primary key,
  name text not null,
  description text,
  status text not null,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create index companies_by_time on companies (created_at, id);

create table environments (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  name text not null,
  description text,
  driver text not null,
  status text not null,
  config text not null,
  env_vars text not null,
  metadata text,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create unique index environments_company_id_name on environments (company_id, name);
create unique index environments_company_id on environments (company_id) where driver = 'local';
create index environments_by_time on environments (company_id, updated_at, id);
create index environments_by_driver on environments (company_id, driver, updated_at, id);
create index environments_by_status on environments (company_id, status, updated_at, id);

-- Added here because the two tables refer to each other.
alter table companies
  add column default_environment_id text references environments (id) on delete set null;
create index companies_by_environment on companies (default_environment_id);

create table agents (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  name text not null,
  role text not null,
  title text,
  status text not null,
  adapter_type text not null,
  adapter_config text not null,
  runtime_config text not null,
  default_environment_id text references environments (id) on delete set null,
  metadata text,
  last_heartbeat_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create index agents_by_time on agents (company_id, created_at, id);
create index agents_by_environment on agents (default_environment_id);

-- A lease outlives its environment, so that release never needs the environment's row.
create table environment_leases (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  environment_id text references environments (id) on delete set null,
  execution_workspace_id text,
  issue_id text,
  heartbeat_run_id text,
  status text not null,
  lease_policy text not null,
  provider text,
  provider_lease_id text,
  acquired_at bigint not null,
  last_used_at bigint not null,
  expires_at bigint,
  released_at bigint,
  failure_reason text,
  cleanup_status text,
  metadata text,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create index environment_leases_by_time on environment_leases (environment_id, last_used_at, id);
create index environment_leases_by_status
  on environment_leases (environment_id, status, last_used_at, id);
create index environment_leases_by_company on environment_leases (company_id, status);

-- owned_by_environment_id refers to no row on purpose: the secrets of a deleted environment must
-- still be found by its id.
create table company_secrets (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  scope text not null,
  key text not null,
  name text not null,
  provider text not null,
  status text not null,
  managed_mode text not null,
  external_ref text,
  provider_metadata text,
  latest_version bigint not null,
  description text,
  last_resolved_at bigint,
  last_rotated_at bigint,
  deleted_at bigint,
  created_by_agent_id text,
  created_by_user_id text,
  owned_by_environment_id text,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create unique index company_secrets_company_id_name on company_secrets (company_id, name)
  where deleted_at is null;
create unique index company_secrets_company_id_key on company_secrets (company_id, key)
  where deleted_at is null;
create index company_secrets_by_time on company_secrets (company_id, created_at, id);
create index company_secrets_by_owner on company_secrets (owned_by_environment_id);

create table company_secret_versions (
  id text not null primary key,
  secret_id text not null references company_secrets (id) on delete cascade,
  number bigint not null,
  key_id text not null,
  material text not null,
  fingerprint text not null,
  status text not null,
  provider_version_ref text,
  revoked_at bigint,
  created_at bigint not null,
  version bigint not null
);
create unique index company_secret_versions_secret_id_number
  on company_secret_versions (secret_id, number);
create index company_secret_versions_by_key on company_secret_versions (key_id);

create table company_secret_bindings (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  secret_id text not null references company_secrets (id) on delete cascade,
  target_type text not null,
  target_id text not null,
  config_path text not null,
  version_selector text not null,
  required bigint not null,
  label text,
  projection_class text not null,
  projection_allowlist_key text,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create unique index company_secret_bindings_by_target
  on company_secret_bindings (target_id, target_type, config_path, company_id);
create index company_secret_bindings_by_secret on company_secret_bindings (secret_id, created_at);
create index company_secret_bindings_by_company on company_secret_bindings (company_id, secret_id);

-- Both tables below grow with every use, so they have no index that no query asks for. Events go
-- with their secret, which goes with its company.
create table secret_access_events (
  id text not null primary key,
  company_id text not null,
  secret_id text not null references company_secrets (id) on delete cascade,
  secret_version bigint,
  provider text not null,
  actor_type text not null,
  actor_id text not null,
  consumer_type text not null,
  consumer_id text not null,
  config_path text,
  heartbeat_run_id text,
  outcome text not null,
  error_code text,
  created_at bigint not null,
  version bigint not null
);
create index secret_access_events_by_time on secret_access_events (secret_id, created_at, id);

create table activity (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  actor_type text not null,
  actor_id text not null,
  action text not null,
  entity_type text not null,
  entity_id text not null,
  agent_id text,
  run_id text,
  details text not null,
  created_at bigint not null,
  version bigint not null
);
create index activity_by_time on activity (company_id, created_at, id);
create index activity_by_entity on activity (company_id, entity_id, created_at, id);
create index activity_by_entity_type on activity (company_id, entity_type, created_at, id);
create index activity_by_action on activity (company_id, action, created_at, id);

create table tokens (
  id text not null primary key,
  company_id text references companies (id) on delete cascade,
  kind text not null,
  agent_id text references agents (id) on delete cascade,
  role text not null,
  name text not null,
  hint text not null,
  expires_at bigint,
  last_used_at bigint,
  revoked_at bigint,
  created_at bigint not null,
  hash text not null,
  version bigint not null
);
create unique index tokens_hash on tokens (hash);
create index tokens_by_time on tokens (created_at, id);
create index tokens_by_company on tokens (company_id, created_at, id);
create index tokens_by_agent on tokens (agent_id);

create table settings (
  name text not null primary key,
  document text not null,
  updated_at bigint not null,
  version bigint not null
);

create table idempotency_answers (
  caller text not null,
  key text not null,
  fingerprint text not null,
  answer text not null,
  created_at bigint not null,
  version bigint not null,
  primary key (caller, key)
);
create index idempotency_answers_by_time on idempotency_answers (created_at);
