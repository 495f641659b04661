CREATE TABLE "etl"."operations" (
	"name" text PRIMARY KEY NOT NULL,
	"is_enabled" boolean NOT NULL,
	"changed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"changed_by" text NOT NULL
);
