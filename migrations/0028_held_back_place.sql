-- A withdrawal that was not made is held back; only the source refuses.
ALTER TABLE "etl"."coverage" RENAME COLUMN "refused_place" TO "held_back_place";
