-- What a company stores is counted, and what has ended is removed after its time. `payload_bytes` is
-- what the caller gave to a run and its row keeps. A run whose `log_removed_at` is set has no log: it
-- is set before the files go, so that a server which dies between the two removes them later. `quota`
-- holds the limits of one company that differ from those of the instance.

alter table heartbeat_runs add column payload_bytes bigint not null default 0;
alter table heartbeat_runs add column log_removed_at bigint;
alter table companies add column quota text;

-- These hold finished runs only: a run that waits or works writes none of them. The first is read
-- for a count, the others in order.
create index heartbeat_runs_stored on heartbeat_runs
  (company_id, finished_at, log_bytes, payload_bytes, log_removed_at)
  where finished_at is not null;
create index heartbeat_runs_finished on heartbeat_runs (finished_at, id)
  where finished_at is not null;
create index heartbeat_runs_logs on heartbeat_runs (finished_at, id)
  where finished_at is not null and log_removed_at is null and log_bytes > 0;
create index heartbeat_runs_retries on heartbeat_runs (retry_of_run_id)
  where retry_of_run_id is not null;
