CREATE TABLE "etl"."alias_owners" (
	"exchange" text NOT NULL,
	"kind" text NOT NULL,
	"symbol" text NOT NULL,
	"series" text NOT NULL,
	"valid_from" date NOT NULL,
	"valid_to" date NOT NULL,
	"instrument_id" text NOT NULL,
	"share_id" text NOT NULL,
	CONSTRAINT "alias_owners_pkey" PRIMARY KEY("exchange","kind","symbol","series","valid_from")
);
--> statement-breakpoint
CREATE TABLE "etl"."event_progress" (
	"exchange" text PRIMARY KEY NOT NULL,
	"notices_state" bigint NOT NULL,
	"owners_state" bigint NOT NULL,
	"digest" text NOT NULL
);
--> statement-breakpoint
ALTER TABLE "etl"."alias_progress" ADD COLUMN "owners_state" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "alias_owners_instrument_idx" ON "etl"."alias_owners" USING btree ("instrument_id");