-- By hand: most shares are listed on both exchanges under one symbol. With the exchange in the index, all days of a
-- symbol on one exchange are found without reading the rows of the other. Measured in docs/performance.md.
DROP INDEX "market"."bhavcopy_cm_symbol_idx";--> statement-breakpoint
CREATE INDEX "bhavcopy_cm_symbol_idx" ON "market"."bhavcopy_cm" ("symbol","exchange","trade_date");--> statement-breakpoint
DROP INDEX "market"."deliveries_symbol_idx";--> statement-breakpoint
CREATE INDEX "deliveries_symbol_idx" ON "market"."deliveries" ("symbol","exchange","trade_date");
