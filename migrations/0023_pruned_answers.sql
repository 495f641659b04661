CREATE TABLE "etl"."pruned" (
	"operation" text NOT NULL,
	"exchange" text NOT NULL,
	"place" timestamp(6) with time zone NOT NULL,
	"state" bigint NOT NULL,
	CONSTRAINT "pruned_pkey" PRIMARY KEY("operation","exchange")
);
