-- The number of the last act whose line is in the audit trail, in place of a mark at each act.
ALTER TABLE audit_anchor DROP COLUMN birth_file;
ALTER TABLE audit_anchor RENAME COLUMN birth_length TO acts;
UPDATE audit_anchor SET acts = coalesce((SELECT max(number) FROM act WHERE has_line = 1), 0);
DROP INDEX ix_act_without_line;
ALTER TABLE act DROP COLUMN has_line;
