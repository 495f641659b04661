CREATE TABLE "etl"."alerts" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"message" text NOT NULL,
	"facts" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"raised_at" timestamp with time zone DEFAULT now() NOT NULL,
	"repeated" integer DEFAULT 0 NOT NULL,
	"delivered_at" timestamp with time zone,
	"attempts" integer DEFAULT 0 NOT NULL,
	"error" text
);
--> statement-breakpoint
CREATE TABLE "etl"."findings" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"check" text NOT NULL,
	"severity" text NOT NULL,
	"operation" text NOT NULL,
	"exchange" text NOT NULL,
	"date" date NOT NULL,
	"instrument" text DEFAULT '' NOT NULL,
	"expected" text,
	"found" text,
	"run_id" bigint,
	"found_at" timestamp with time zone DEFAULT now() NOT NULL,
	"resolved_at" timestamp with time zone,
	CONSTRAINT "findings_key" UNIQUE("check","operation","exchange","date","instrument"),
	CONSTRAINT "findings_severity" CHECK ("etl"."findings"."severity" in ('info', 'warning', 'error'))
);
--> statement-breakpoint
CREATE TABLE "etl"."response_bodies" (
	"hash" text PRIMARY KEY NOT NULL,
	"encoding" text NOT NULL,
	"body" "bytea" NOT NULL,
	"bytes" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "etl"."responses" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"run_id" bigint NOT NULL,
	"window_id" bigint NOT NULL,
	"operation" text NOT NULL,
	"exchange" text NOT NULL,
	"from_date" date NOT NULL,
	"to_date" date NOT NULL,
	"instruments" text[] NOT NULL,
	"params" jsonb NOT NULL,
	"part" text NOT NULL,
	"narrowed" boolean NOT NULL,
	"called_on" date NOT NULL,
	"hash" text NOT NULL,
	"content_type" text,
	"fetched_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "etl"."sessions" (
	"exchange" text NOT NULL,
	"day" date NOT NULL,
	"kind" text NOT NULL,
	CONSTRAINT "sessions_pkey" PRIMARY KEY("exchange","day")
);
--> statement-breakpoint
ALTER TABLE "etl"."windows" ADD COLUMN "source_file" text;--> statement-breakpoint
ALTER TABLE "etl"."windows" ADD COLUMN "source_hash" text;--> statement-breakpoint
ALTER TABLE "etl"."responses" ADD CONSTRAINT "responses_hash_response_bodies_hash_fk" FOREIGN KEY ("hash") REFERENCES "etl"."response_bodies"("hash") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "alerts_subject_idx" ON "etl"."alerts" USING btree ("kind","subject");--> statement-breakpoint
CREATE INDEX "responses_asked_idx" ON "etl"."responses" USING btree ("operation","exchange","from_date");--> statement-breakpoint
CREATE INDEX "responses_hash_idx" ON "etl"."responses" USING btree ("hash");--> statement-breakpoint
CREATE INDEX "responses_window_idx" ON "etl"."responses" USING btree ("window_id");
--> statement-breakpoint
COMMENT ON TABLE "etl"."response_bodies" IS 'Bodies of answers, each kept once.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."response_bodies"."hash" IS 'SHA-256 of the body as it was read, in hex.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."response_bodies"."encoding" IS 'How the body is compressed.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."response_bodies"."body" IS 'The body, compressed.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."response_bodies"."bytes" IS 'Length before compression. Unit: bytes.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."responses" IS 'Every answer with the request that fetched it: what replay reads.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."id" IS 'Number of the answer.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."run_id" IS 'The run that fetched it.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."window_id" IS 'The window that fetched it.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."operation" IS 'Operation of the source.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."exchange" IS 'Exchange asked.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."from_date" IS 'First day asked for.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."to_date" IS 'Last day asked for.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."instruments" IS 'Instruments asked for; empty means the whole exchange.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."params" IS 'Further request options; never the access key.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."part" IS 'Which of several questions of one day, e.g. eod/Standalone.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."narrowed" IS 'Narrowed by hand to a part of the data.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."called_on" IS 'Day of the call in EOD_TIMEZONE.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."hash" IS 'The body, in etl.response_bodies.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."content_type" IS 'Content type the source declared.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."fetched_at" IS 'When it was fetched.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."findings" IS 'What the data sets say against one another; never blocks or alters data.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."id" IS 'Number of the finding.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."check" IS 'Name of the check.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."severity" IS 'info, warning or error.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."operation" IS 'Operation whose data is at odds.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."exchange" IS 'Exchange.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."date" IS 'Session day.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."instrument" IS 'Instrument, where it concerns one.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."expected" IS 'What the other data says.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."found" IS 'What the data says.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."run_id" IS 'The run after which it was found.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."found_at" IS 'When it was last found.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."findings"."resolved_at" IS 'When it was found no more; null while it stands.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."alerts" IS 'Alerts raised, each kept once while it lasts.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."alerts"."id" IS 'Number of the alert.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."alerts"."kind" IS 'What it is about, e.g. credential.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."alerts"."subject" IS 'Whom it is about; the same kind and subject is the same alert.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."alerts"."message" IS 'One clear sentence.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."alerts"."facts" IS 'Facts for machines, as JSON.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."alerts"."raised_at" IS 'When it was first raised.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."alerts"."repeated" IS 'How often it was raised again.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."alerts"."delivered_at" IS 'When the webhook took it; null while it has not.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."alerts"."attempts" IS 'Deliveries tried.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."alerts"."error" IS 'Why the last delivery failed.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."sessions" IS 'Sessions of the exchanges as the calendar knows them.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."sessions"."exchange" IS 'Exchange.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."sessions"."day" IS 'Session day.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."sessions"."kind" IS 'session, special, or observed: data came for a day the calendar calls closed.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."source_file" IS 'The file an import read.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."source_hash" IS 'SHA-256 of that file, in hex.';
--> statement-breakpoint
ALTER TABLE "etl"."runs" DROP CONSTRAINT "runs_kind";--> statement-breakpoint
ALTER TABLE "etl"."windows" ADD COLUMN "preview" jsonb;--> statement-breakpoint
ALTER TABLE "etl"."runs" ADD CONSTRAINT "runs_kind" CHECK ("etl"."runs"."kind" in ('backfill', 'nightly', 'import', 'replay', 'gap_fill', 'preview'));
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."preview" IS 'What a preview would have changed: sample rows with the columns that differ.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."kind" IS 'backfill, nightly, import, replay, gap_fill or preview (asked, compared, rolled back).';
