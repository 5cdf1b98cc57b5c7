-- The config of the environment under which a template was captured, to tell what has changed since.

alter table templates add column source_config text;
