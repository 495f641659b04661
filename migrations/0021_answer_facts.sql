ALTER TABLE "etl"."answers" ADD COLUMN "said" text;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "records" integer;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "diagnostic" text;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "questions" jsonb;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "doubted" boolean;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "emptied_days" date[];--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "held_back_days" date[];--> statement-breakpoint
CREATE INDEX "answers_marked_idx" ON "etl"."answers" USING btree ("operation","exchange") WHERE (emptied_days is not null or held_back_days is not null);