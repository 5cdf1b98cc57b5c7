-- Plugins, what companies have set for them and what they keep. The rules of 0001 apply. A scope
-- without an id has the empty one, because a unique index takes two nulls for different values.

create table plugins (
  id text not null primary key,
  plugin_key text not null,
  package_name text not null,
  source text not null,
  package_version text not null,
  api_version bigint not null,
  categories text not null,
  manifest text not null,
  status text not null,
  install_order bigint not null,
  package_path text,
  folder_id text,
  last_error text,
  pending_upgrade text,
  installed_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create unique index plugins_plugin_key on plugins (plugin_key);
create index plugins_by_order on plugins (install_order, id);

create table plugin_folders (
  id text not null primary key,
  use text not null,
  node_id text not null,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);

create table plugin_configs (
  id text not null primary key,
  plugin_id text not null references plugins (id) on delete cascade,
  company_id text not null references companies (id) on delete cascade,
  config_json text not null,
  last_error text,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create unique index plugin_configs_plugin_id_company_id on plugin_configs (plugin_id, company_id);
create index plugin_configs_by_company on plugin_configs (company_id);

-- `company_id` repeats the id of a company's scope, so that the values go with their company.
create table plugin_state (
  plugin_id text not null references plugins (id) on delete cascade,
  scope_kind text not null,
  scope_id text not null,
  name_space text not null,
  state_key text not null,
  company_id text references companies (id) on delete cascade,
  value text not null,
  updated_at bigint not null,
  primary key (plugin_id, scope_kind, scope_id, name_space, state_key)
);
create index plugin_state_by_company on plugin_state (company_id);

create table plugin_entities (
  id text not null primary key,
  plugin_id text not null references plugins (id) on delete cascade,
  company_id text references companies (id) on delete cascade,
  entity_type text not null,
  scope_kind text not null,
  scope_id text,
  external_id text,
  title text,
  status text,
  document text not null,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null
);
create index plugin_entities_by_name
  on plugin_entities (plugin_id, entity_type, external_id, created_at, id);
create index plugin_entities_by_time on plugin_entities (plugin_id, created_at, id);
create index plugin_entities_by_company on plugin_entities (company_id);

create table plugin_logs (
  id text not null primary key,
  plugin_id text not null references plugins (id) on delete cascade,
  company_id text references companies (id) on delete cascade,
  level text not null,
  message text not null,
  meta text,
  created_at bigint not null,
  version bigint not null
);
create index plugin_logs_by_time on plugin_logs (plugin_id, created_at, id);
create index plugin_logs_by_age on plugin_logs (created_at, id);
create index plugin_logs_by_company on plugin_logs (company_id);

create index sandboxes_by_plugin on sandboxes (plugin_id)
  where status in ('creating', 'idle', 'leased', 'destroying');
