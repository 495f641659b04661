CREATE TABLE "etl"."event_decisions" (
	"event_id" text PRIMARY KEY NOT NULL,
	"ratio_new" bigint,
	"ratio_old" bigint,
	"decided_by" text NOT NULL,
	"decided_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "event_decisions_ratio" CHECK (("etl"."event_decisions"."ratio_new" is null) = ("etl"."event_decisions"."ratio_old" is null) and "etl"."event_decisions"."ratio_new" > 0 is not false and "etl"."event_decisions"."ratio_old" > 0 is not false)
);
--> statement-breakpoint
CREATE TABLE "market"."corporate_action_notices" (
	"exchange" text NOT NULL,
	"symbol" text NOT NULL,
	"ex_date" date NOT NULL,
	"series" text NOT NULL,
	"purpose" text NOT NULL,
	"scrip_code" integer,
	"company_name" text,
	"face_value" numeric,
	"record_date" date,
	"book_closure_from" date,
	"book_closure_to" date,
	"payment_date" date,
	"told_kind" text,
	"told_ratio" text,
	"source_received_at" timestamp with time zone,
	"source_saved_at" timestamp with time zone,
	"first_loaded_at" timestamp with time zone NOT NULL,
	"last_changed_at" timestamp with time zone NOT NULL,
	"revision" integer NOT NULL,
	"run_id" bigint NOT NULL,
	"load_id" bigint NOT NULL,
	CONSTRAINT "corporate_action_notices_pkey" PRIMARY KEY("exchange","symbol","ex_date","series","purpose")
);
--> statement-breakpoint
CREATE TABLE "market_history"."corporate_action_notices" (
	"exchange" text NOT NULL,
	"symbol" text NOT NULL,
	"ex_date" date NOT NULL,
	"series" text NOT NULL,
	"purpose" text NOT NULL,
	"scrip_code" integer,
	"company_name" text,
	"face_value" numeric,
	"record_date" date,
	"book_closure_from" date,
	"book_closure_to" date,
	"payment_date" date,
	"told_kind" text,
	"told_ratio" text,
	"source_received_at" timestamp with time zone,
	"source_saved_at" timestamp with time zone,
	"first_loaded_at" timestamp with time zone NOT NULL,
	"last_changed_at" timestamp with time zone NOT NULL,
	"revision" integer NOT NULL,
	"run_id" bigint NOT NULL,
	"load_id" bigint NOT NULL,
	"valid_from" timestamp with time zone NOT NULL,
	"valid_to" timestamp with time zone NOT NULL,
	"withdrawn" boolean NOT NULL,
	"replaced_by_load_id" bigint NOT NULL,
	CONSTRAINT "corporate_action_notices_history_pkey" PRIMARY KEY("exchange","symbol","ex_date","series","purpose","revision")
);
--> statement-breakpoint
CREATE TABLE "market"."corporate_events" (
	"exchange" text NOT NULL,
	"symbol" text NOT NULL,
	"ex_date" date NOT NULL,
	"kind" text NOT NULL,
	"item" text NOT NULL,
	"event_id" text,
	"instrument_id" text,
	"scrip_code" integer,
	"record_date" date,
	"purpose" text,
	"ratio_new" bigint,
	"ratio_old" bigint,
	"amount" numeric,
	"price_factor" numeric,
	"status" text,
	"status_reason" text,
	"source_received_at" timestamp with time zone,
	"source_saved_at" timestamp with time zone,
	"first_loaded_at" timestamp with time zone NOT NULL,
	"last_changed_at" timestamp with time zone NOT NULL,
	"revision" integer NOT NULL,
	"run_id" bigint NOT NULL,
	"load_id" bigint NOT NULL,
	CONSTRAINT "corporate_events_pkey" PRIMARY KEY("exchange","symbol","ex_date","kind","item")
);
--> statement-breakpoint
CREATE TABLE "market_history"."corporate_events" (
	"exchange" text NOT NULL,
	"symbol" text NOT NULL,
	"ex_date" date NOT NULL,
	"kind" text NOT NULL,
	"item" text NOT NULL,
	"event_id" text,
	"instrument_id" text,
	"scrip_code" integer,
	"record_date" date,
	"purpose" text,
	"ratio_new" bigint,
	"ratio_old" bigint,
	"amount" numeric,
	"price_factor" numeric,
	"status" text,
	"status_reason" text,
	"source_received_at" timestamp with time zone,
	"source_saved_at" timestamp with time zone,
	"first_loaded_at" timestamp with time zone NOT NULL,
	"last_changed_at" timestamp with time zone NOT NULL,
	"revision" integer NOT NULL,
	"run_id" bigint NOT NULL,
	"load_id" bigint NOT NULL,
	"valid_from" timestamp with time zone NOT NULL,
	"valid_to" timestamp with time zone NOT NULL,
	"withdrawn" boolean NOT NULL,
	"replaced_by_load_id" bigint NOT NULL,
	CONSTRAINT "corporate_events_history_pkey" PRIMARY KEY("exchange","symbol","ex_date","kind","item","revision")
);
--> statement-breakpoint
CREATE TABLE "market"."symbol_changes" (
	"exchange" text NOT NULL,
	"changed_on" date NOT NULL,
	"old_symbol" text NOT NULL,
	"new_symbol" text NOT NULL,
	"company_name" text,
	"source_received_at" timestamp with time zone,
	"source_saved_at" timestamp with time zone,
	"first_loaded_at" timestamp with time zone NOT NULL,
	"last_changed_at" timestamp with time zone NOT NULL,
	"revision" integer NOT NULL,
	"run_id" bigint NOT NULL,
	"load_id" bigint NOT NULL,
	CONSTRAINT "symbol_changes_pkey" PRIMARY KEY("exchange","changed_on","old_symbol","new_symbol")
);
--> statement-breakpoint
CREATE TABLE "market_history"."symbol_changes" (
	"exchange" text NOT NULL,
	"changed_on" date NOT NULL,
	"old_symbol" text NOT NULL,
	"new_symbol" text NOT NULL,
	"company_name" text,
	"source_received_at" timestamp with time zone,
	"source_saved_at" timestamp with time zone,
	"first_loaded_at" timestamp with time zone NOT NULL,
	"last_changed_at" timestamp with time zone NOT NULL,
	"revision" integer NOT NULL,
	"run_id" bigint NOT NULL,
	"load_id" bigint NOT NULL,
	"valid_from" timestamp with time zone NOT NULL,
	"valid_to" timestamp with time zone NOT NULL,
	"withdrawn" boolean NOT NULL,
	"replaced_by_load_id" bigint NOT NULL,
	CONSTRAINT "symbol_changes_history_pkey" PRIMARY KEY("exchange","changed_on","old_symbol","new_symbol","revision")
);
--> statement-breakpoint
ALTER TABLE "etl"."runs" DROP CONSTRAINT "runs_kind";--> statement-breakpoint
CREATE INDEX "corporate_action_notices_history_day_idx" ON "market_history"."corporate_action_notices" USING btree ("exchange","ex_date");--> statement-breakpoint
CREATE INDEX "corporate_action_notices_history_withdrawn_idx" ON "market_history"."corporate_action_notices" USING btree ("exchange","ex_date") WHERE withdrawn;--> statement-breakpoint
CREATE INDEX "corporate_events_history_day_idx" ON "market_history"."corporate_events" USING btree ("exchange","ex_date");--> statement-breakpoint
CREATE INDEX "corporate_events_history_withdrawn_idx" ON "market_history"."corporate_events" USING btree ("exchange","ex_date") WHERE withdrawn;--> statement-breakpoint
CREATE INDEX "symbol_changes_history_day_idx" ON "market_history"."symbol_changes" USING btree ("exchange","changed_on");--> statement-breakpoint
CREATE INDEX "symbol_changes_history_withdrawn_idx" ON "market_history"."symbol_changes" USING btree ("exchange","changed_on") WHERE withdrawn;--> statement-breakpoint
ALTER TABLE "etl"."runs" ADD CONSTRAINT "runs_kind" CHECK ("etl"."runs"."kind" in ('backfill', 'nightly', 'import', 'replay', 'gap_fill', 'preview', 'events'));