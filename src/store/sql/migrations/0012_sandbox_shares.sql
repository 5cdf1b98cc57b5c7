-- What a sandbox of this machine may take, by its config, so that the sum over a company is one
-- statement. Sandboxes from before are not counted; they end.

alter table sandboxes add column memory_mb bigint not null default 0;
alter table sandboxes add column disk_mb bigint not null default 0;
alter table sandboxes add column pids bigint not null default 0;
alter table sandboxes add column counted bigint not null default 0;
