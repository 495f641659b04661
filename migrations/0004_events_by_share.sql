-- By hand: adjusted prices look for the events of a share, and for all that have a ratio or were decided about.
CREATE INDEX "corporate_events_share_idx" ON "market"."corporate_events" ("exchange","instrument_id","ex_date");--> statement-breakpoint
CREATE INDEX "corporate_events_ratio_idx" ON "market"."corporate_events" ("exchange","instrument_id","ex_date") WHERE ratio_new IS NOT NULL OR status_reason LIKE 'decided by %';
