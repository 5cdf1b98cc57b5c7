-- What the worker of a plugin may reach besides the public internet. Plugins that were there before
-- their workers had a box could reach private networks, and still can, until an administrator
-- changes it.

alter table plugins add column egress text;
update plugins set egress = '{"allow":[],"keptPrivate":true}';
