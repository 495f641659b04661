ALTER TABLE "etl"."responses" ADD COLUMN "loaded_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL;--> statement-breakpoint
-- Of answers kept so far the call is the best that is known, and what a replay has gone by.
UPDATE "etl"."responses" SET "loaded_at" = "fetched_at";
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."loaded_at" IS 'When its rows were stored, told while the locks of its days are held: a replay keeps this order.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."params" IS 'As in etl.windows. With "file" the body is no answer but an imported csv file of that name.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."responses"."fetched_at" IS 'When it was fetched; of a file, when it was read.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."params" IS 'Further request options; never the access key. Of an import: "file", the name of the csv, and "tickers", the moment as of which its rows got theirs, where it has none itself.';
