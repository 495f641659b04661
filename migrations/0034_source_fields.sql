CREATE TABLE "etl"."answer_layouts" (
	"operation" text NOT NULL,
	"exchange" text NOT NULL,
	"layout" bigint NOT NULL,
	"fields" jsonb NOT NULL,
	"first_place" timestamp(6) with time zone NOT NULL,
	"first_run_id" bigint NOT NULL,
	"last_place" timestamp(6) with time zone NOT NULL,
	"last_run_id" bigint NOT NULL,
	"answers" bigint NOT NULL,
	"counts" bigint[] NOT NULL,
	CONSTRAINT "answer_layouts_pkey" PRIMARY KEY("operation","exchange","layout")
);
--> statement-breakpoint
CREATE TABLE "etl"."declared_fields" (
	"operation" text NOT NULL,
	"field" text NOT NULL,
	"mapped_column" text NOT NULL,
	CONSTRAINT "declared_fields_pkey" PRIMARY KEY("operation","field","mapped_column")
);
--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "layout" bigint;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "field_counts" integer[];--> statement-breakpoint
CREATE VIEW "etl"."source_fields" AS (with sent as (
    select l.operation, l.exchange, l.first_place, l.last_place, l.counts[1] as records, l.counts[1 + f.at] as filled,
           f.field ->> 'name' as name, f.field ->> 'plain' as plain, f.field ->> 'type' as type, f.field ->> 'example' as example
      from etl.answer_layouts l, jsonb_array_elements(l.fields) with ordinality as f(field, at)
  )
  select s.operation, s.exchange, (array_agg(s.name order by s.last_place desc, s.name))[1] as field,
         (array_agg(s.type order by s.last_place desc, s.type) filter (where s.type is not null))[1] as type,
         min(s.first_place)::timestamptz as first_seen_at, max(s.last_place)::timestamptz as last_seen_at,
         round(1 - sum(s.filled) / sum(s.records), 4) as share_null,
         (array_agg(s.example order by s.last_place desc, s.example) filter (where s.example is not null))[1] as example,
         (select string_agg(d.mapped_column, ', ' order by d.mapped_column) from etl.declared_fields d
           where d.operation = s.operation and d.field = s.plain) as mapped_column
    from sent s group by s.operation, s.exchange, s.plain);