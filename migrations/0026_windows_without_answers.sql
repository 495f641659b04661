DROP INDEX "etl"."windows_answer_idx";--> statement-breakpoint
ALTER TABLE "etl"."windows" DROP COLUMN "answer_id";