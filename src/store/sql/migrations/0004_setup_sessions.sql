-- Sandboxes that were captured, and the sessions in which somebody prepares one by hand.

create table templates (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  name text not null,
  environment_id text references environments (id) on delete set null,
  role text,
  provider text not null,
  kind text not null,
  template_ref text,
  binding text not null,
  source_template_id text,
  source_lease_id text,
  source_config_fingerprint text,
  node_id text,
  expendable bigint not null,
  status text not null,
  config text not null,
  metadata text not null,
  failure_reason text,
  attempts bigint not null,
  next_attempt_at bigint,
  captured_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create unique index templates_company_id_name on templates (company_id, name)
  where status in ('capturing', 'ready', 'deleting');
create unique index templates_environment_id on templates (environment_id)
  where role = 'active' and status = 'ready';
create index templates_by_time on templates (company_id, created_at, id);
create index templates_by_environment on templates (environment_id, created_at, id);
create index templates_by_source on templates (source_template_id)
  where status in ('capturing', 'ready', 'deleting');
create index templates_due on templates (next_attempt_at, id)
  where status in ('capturing', 'ready', 'deleting');

create table setup_sessions (
  id text not null primary key,
  company_id text not null references companies (id) on delete cascade,
  environment_id text not null references environments (id) on delete cascade,
  template_id text,
  promoted_template_id text,
  provider text not null,
  environment_lease_id text not null,
  status text not null,
  started_by text not null,
  node_id text,
  expires_at bigint not null,
  finished_at bigint,
  failure_reason text,
  metadata text,
  next_attempt_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create unique index setup_sessions_environment_id on setup_sessions (environment_id)
  where status in ('starting', 'waiting_for_user', 'capturing');
create index setup_sessions_by_environment on setup_sessions (environment_id, created_at, id);
create index setup_sessions_due on setup_sessions (next_attempt_at, id)
  where status in ('starting', 'waiting_for_user', 'capturing');
