-- Two more things that a company may use only where an instance administrator allows it: hosts
-- behind SSH whose addresses are not public, and sandboxes that are weakened. Companies that are
-- here already keep what their environments use: every SSH environment counts, since no SQL knows
-- where a name leads. Configs are compact JSON, so that their text can be asked.

update companies set
  allowances = case when allowances = '{}' then '{"privateSsh":true}'
    else substr(allowances, 1, length(allowances) - 1) || ',"privateSsh":true}' end,
  kept_allowances = case when kept_allowances = '[]' then '["private_ssh"]'
    else substr(kept_allowances, 1, length(kept_allowances) - 1) || ',"private_ssh"]' end
where exists (
  select 1 from environments where environments.company_id = companies.id
  and environments.driver = 'ssh'
);

update companies set
  allowances = case when allowances = '{}' then '{"weakSandbox":true}'
    else substr(allowances, 1, length(allowances) - 1) || ',"weakSandbox":true}' end,
  kept_allowances = case when kept_allowances = '[]' then '["weak_sandbox"]'
    else substr(kept_allowances, 1, length(kept_allowances) - 1) || ',"weak_sandbox"]' end
where exists (
  select 1 from environments where environments.company_id = companies.id
  and environments.driver = 'sandbox' and environments.config like '%"provider":"linux"%' and (
    environments.config like '%"minIsolation":"minimal"%'
    or environments.config like '%"allow":[%"nested_user_namespaces"%'
  )
);
