ALTER TABLE "etl"."alerts" ADD COLUMN "next_attempt_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
comment on column etl.alerts.next_attempt_at is 'It is not sent again before; each try pushes it further away.';
