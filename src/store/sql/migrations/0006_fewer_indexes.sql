-- A lease writes, at every step of its life, each index that names its status. So what is looked for
-- among unfinished leases and sandboxes alone is found in one index of them, and a lease without a
-- sandbox or a run is in no index of those. For a list of states, SQLite would build a table at every
-- write of a row.

drop index environment_leases_due;
drop index environment_leases_by_node;
create index environment_leases_live on environment_leases (next_attempt_at, id)
  where (status = 'acquiring' or status = 'active' or status = 'releasing' or status = 'retained'
    or status = 'pending_cleanup');

drop index environment_leases_sandbox_id;
create unique index environment_leases_sandbox_id on environment_leases (sandbox_id)
  where sandbox_id is not null
  and (status = 'acquiring' or status = 'active' or status = 'releasing' or status = 'retained'
    or status = 'pending_cleanup');
drop index environment_leases_heartbeat_run_id;
create unique index environment_leases_heartbeat_run_id on environment_leases (heartbeat_run_id)
  where heartbeat_run_id is not null
  and (status = 'acquiring' or status = 'active' or status = 'releasing');
drop index environment_leases_by_run;
create index environment_leases_by_run on environment_leases (heartbeat_run_id, created_at, id)
  where heartbeat_run_id is not null;

drop index sandboxes_due;
drop index sandboxes_by_node;
drop index sandboxes_by_plugin;
create index sandboxes_live on sandboxes (next_attempt_at, id)
  where (status = 'creating' or status = 'idle' or status = 'leased' or status = 'destroying');
