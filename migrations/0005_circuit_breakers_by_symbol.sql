-- By hand, for queries by symbol.
CREATE INDEX "circuit_breakers_symbol_idx" ON "market"."circuit_breakers" ("symbol","trade_date");
