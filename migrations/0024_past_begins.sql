CREATE TABLE "etl"."past_begins" (
	"table_name" text NOT NULL,
	"exchange" text NOT NULL,
	"state" bigint NOT NULL,
	"run_id" bigint NOT NULL,
	CONSTRAINT "past_begins_pkey" PRIMARY KEY("table_name","exchange")
);
