CREATE TABLE "etl"."withdrawn_operations" (
	"key_hash" text NOT NULL,
	"operation" text NOT NULL,
	"diagnostic" text NOT NULL,
	"noted_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "withdrawn_operations_pkey" PRIMARY KEY("key_hash","operation")
);
