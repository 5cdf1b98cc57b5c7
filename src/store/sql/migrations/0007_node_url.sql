-- Where each server can be asked about what only it has: logs, and places on its machine.

alter table nodes add column url text not null default '';
