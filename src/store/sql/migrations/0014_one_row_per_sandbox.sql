-- A sandbox at a provider has one row while it exists, so that two leases never hold the same one. A
-- provider that names sandboxes by their environment could give the same name to two rows before. Of
-- such rows the newest remains.
update sandboxes set status = 'lost', failure_reason = 'another row held the same sandbox',
  lease_id = null, next_attempt_at = null, parked_at = null, version = version + 1
  where provider_lease_id is not null
  and (status = 'creating' or status = 'idle' or status = 'leased' or status = 'destroying')
  and exists (select 1 from sandboxes as other
    where other.company_id = sandboxes.company_id and other.provider = sandboxes.provider
    and other.provider_lease_id = sandboxes.provider_lease_id
    and (other.status = 'creating' or other.status = 'idle' or other.status = 'leased'
      or other.status = 'destroying')
    and (other.created_at > sandboxes.created_at
      or (other.created_at = sandboxes.created_at and other.id > sandboxes.id)));

create unique index sandboxes_company_id_provider_provider_lease_id on sandboxes
  (company_id, provider, provider_lease_id)
  where (status = 'creating' or status = 'idle' or status = 'leased' or status = 'destroying')
  and provider_lease_id is not null;
