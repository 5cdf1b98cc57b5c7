-- What a company may use of the server's machine without a wall: what an administrator has decided,
-- absent where the server's mode decides, and which of it the company only keeps from before.
-- Companies that are here already keep what they used. Configs are compact JSON, so that their text
-- can be asked. A rule that denies a private address counts like one that allows it: no text that
-- both engines understand tells them apart.

alter table companies add column allowances text not null default '{}';
alter table companies add column kept_allowances text not null default '[]';

create table kept_allowances_by_company (
  company_id text not null,
  allowance text not null
);

insert into kept_allowances_by_company (company_id, allowance)
select id, 'local' from companies where exists (
  select 1 from environments where environments.company_id = companies.id
  and environments.driver = 'local' and (
    environments.id = companies.default_environment_id
    or exists (select 1 from agents where agents.default_environment_id = environments.id)
    or exists (select 1 from heartbeat_runs where heartbeat_runs.environment_id = environments.id)
  )
);

insert into kept_allowances_by_company (company_id, allowance)
select id, 'host_network' from companies where exists (
  select 1 from environments where environments.company_id = companies.id
  and environments.driver = 'sandbox' and environments.config like '%"provider":"linux"%'
  and environments.config like '%"network":"host"%'
);

insert into kept_allowances_by_company (company_id, allowance)
select id, 'private_egress' from companies where exists (
  select 1 from environments where environments.company_id = companies.id
  and environments.driver = 'sandbox' and environments.config like '%"provider":"linux"%'
  and environments.config like '%"egress":%"allow":%' and (
    lower(environments.config) like '%"0.%'
    or lower(environments.config) like '%"10.%'
    or lower(environments.config) like '%"127.%'
    or lower(environments.config) like '%"169.254.%'
    or lower(environments.config) like '%"192.168.%'
    or lower(environments.config) like '%"192.0.%'
    or lower(environments.config) like '%"192.88.99.%'
    or lower(environments.config) like '%"172.1_.%'
    or lower(environments.config) like '%"172.2_.%'
    or lower(environments.config) like '%"172.3_.%'
    or lower(environments.config) like '%"100.6_.%'
    or lower(environments.config) like '%"100.7_.%'
    or lower(environments.config) like '%"100.8_.%'
    or lower(environments.config) like '%"100.9_.%'
    or lower(environments.config) like '%"100.1__.%'
    or lower(environments.config) like '%"198.18.%'
    or lower(environments.config) like '%"198.19.%'
    or lower(environments.config) like '%"198.51.100.%'
    or lower(environments.config) like '%"203.0.113.%'
    or lower(environments.config) like '%"22_.%'
    or lower(environments.config) like '%"23_.%'
    or lower(environments.config) like '%"24_.%'
    or lower(environments.config) like '%"25_.%'
    or lower(environments.config) like '%"[%'
    or lower(environments.config) like '%"%::%'
    or lower(environments.config) like '%"fc__:%'
    or lower(environments.config) like '%"fd__:%'
    or lower(environments.config) like '%"fe__:%'
  )
);

update companies set allowances = '{'
  || '"local":' || case when exists (
    select 1 from kept_allowances_by_company as kept
    where kept.company_id = companies.id and kept.allowance = 'local'
  ) then 'true' else 'null' end
  || ',"hostNetwork":' || case when exists (
    select 1 from kept_allowances_by_company as kept
    where kept.company_id = companies.id and kept.allowance = 'host_network'
  ) then 'true' else 'null' end
  || ',"privateEgress":' || case when exists (
    select 1 from kept_allowances_by_company as kept
    where kept.company_id = companies.id and kept.allowance = 'private_egress'
  ) then 'true' else 'null' end
  || '}';

update companies set kept_allowances = coalesce((
  select '["' || min(kept.allowance)
    || case when count(*) = 3 then '","local","private_egress'
       when count(*) = 2 then '","' || max(kept.allowance) else '' end || '"]'
  from kept_allowances_by_company as kept
  where kept.company_id = companies.id
), '[]');

drop table kept_allowances_by_company;
