-- Rejects become a view of the rejected records, which says by itself which answer resolves them. What has been resolved
-- until now stays so at its time.
CREATE TEMP TABLE "views_of_rejects" AS
	SELECT DISTINCT c.oid, format('%I.%I', n.nspname, c.relname) AS name, pg_get_viewdef(c.oid) AS definition
	  FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
	  JOIN pg_class c ON c.oid = w.ev_class AND c.relkind = 'v' JOIN pg_namespace n ON n.oid = c.relnamespace
	 WHERE d.refobjid = 'etl.rejects'::regclass;--> statement-breakpoint
ALTER TABLE "etl"."rejects" RENAME TO "rejected_records";--> statement-breakpoint
ALTER TABLE "etl"."rejected_records" RENAME COLUMN "resolved_at" TO "settled_at";--> statement-breakpoint
ALTER SEQUENCE "etl"."rejects_id_seq" RENAME TO "rejected_records_id_seq";--> statement-breakpoint
ALTER INDEX "etl"."rejects_pkey" RENAME TO "rejected_records_pkey";--> statement-breakpoint
ALTER INDEX "etl"."rejects_window_idx" RENAME TO "rejected_records_window_idx";--> statement-breakpoint
DROP INDEX "etl"."rejects_open_key";--> statement-breakpoint
ALTER TABLE "etl"."rejected_records" ADD COLUMN "instruments" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "etl"."rejected_records" ADD COLUMN "variant" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "etl"."rejected_records" ADD COLUMN "dated" boolean DEFAULT true NOT NULL;--> statement-breakpoint
UPDATE "etl"."rejected_records" r SET instruments = w.instruments, variant = w.variant,
    dated = r.operation NOT IN ('GetCorporateActionsCategories', 'GetFinRatioSnapshot')
  FROM "etl"."windows" w WHERE w.id = r.window_id;--> statement-breakpoint
-- Those of replays: the place of the answer that was read again.
UPDATE "etl"."rejected_records" r SET last_seen_at = a.place FROM "etl"."windows" w JOIN "etl"."answers" a ON a.id = w.answer_id
 WHERE w.id = r.window_id AND r.last_seen_at = a.fetched_at AND r.last_seen_at <> a.place;--> statement-breakpoint
CREATE INDEX "rejected_records_fingerprint_idx" ON "etl"."rejected_records" USING btree ("fingerprint");--> statement-breakpoint
CREATE INDEX "rejected_records_last_idx" ON "etl"."rejected_records" USING btree ("last_seen_at");--> statement-breakpoint
CREATE INDEX "rejected_records_unsettled_idx" ON "etl"."rejected_records" USING btree ("operation","exchange") WHERE "etl"."rejected_records"."settled_at" is null;--> statement-breakpoint
CREATE INDEX "answers_believed_idx" ON "etl"."answers" USING gist (daterange("from_date", "to_date", '[]')) WHERE "etl"."answers"."believed" and not "etl"."answers"."filtered";--> statement-breakpoint
CREATE VIEW "etl"."rejects" AS (select id, run_id, window_id, operation, exchange, position, from_date, to_date, fingerprint, record, problems, stray, first_seen_at, last_seen_at, settled_at as resolved_at from etl.rejected_records where settled_at is not null
  union all
  select id, run_id, window_id, operation, exchange, position, from_date, to_date, fingerprint, record, problems, stray, first_seen_at, last_seen_at, (select min(a.place)::timestamptz from (select * from etl.answers where believed and not filtered and daterange(from_date, to_date, '[]')
      @> case when r.dated then daterange(r.from_date, r.to_date, '[]') else 'empty' end offset 0) a
    where a.operation = r.operation and a.exchange = r.exchange and a.variant = r.variant and a.place > r.last_seen_at
      and (a.instruments = '{}' or r.instruments <> '{}' and r.instruments <@ a.instruments))
    from etl.rejected_records r where settled_at is null);--> statement-breakpoint
-- Who may read the table may read the view; who may only read, reads only the view. Views of users refer to it, too.
DO $$
DECLARE one record;
BEGIN
  FOR one IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS role, count(*) = 1 AS reads
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'etl.rejected_records'::regclass AND a.grantee <> c.relowner
              GROUP BY a.grantee HAVING bool_or(a.privilege_type = 'SELECT') LOOP
    EXECUTE 'GRANT SELECT ON etl.rejects TO ' || one.role;
    IF one.reads THEN EXECUTE 'REVOKE SELECT ON etl.rejected_records FROM ' || one.role; END IF;
  END LOOP;
  FOR one IN SELECT v.name, v.definition, pg_has_role(c.relowner, 'USAGE') AND has_schema_privilege(c.relnamespace, 'CREATE') AS ours
               FROM "views_of_rejects" v JOIN pg_class c ON c.oid = v.oid ORDER BY v.oid LOOP
    IF one.ours THEN
      EXECUTE format('CREATE OR REPLACE VIEW %s AS %s', one.name, one.definition);
    ELSE
      RAISE WARNING 'the view % shows rejects as they were stored, until its owner creates it again', one.name;
    END IF;
  END LOOP;
END $$;
--> statement-breakpoint
DROP TABLE "views_of_rejects";--> statement-breakpoint
ALTER TABLE "etl"."loads" DROP COLUMN "whole";
