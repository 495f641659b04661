CREATE TABLE "etl"."checked_days" (
	"day" date PRIMARY KEY NOT NULL,
	"checked_at" timestamp with time zone NOT NULL
);
