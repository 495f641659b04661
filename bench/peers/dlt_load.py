"""Loads the JSON lines of a folder into Postgres with dlt, by its upsert strategy.

Settings as its documentation recommends them for speed:
- Arrow tables instead of Python dictionaries, loaded by COPY: "Postgres", section "Fast loading with Arrow tables"
- pages, not rows, from the resource: "Optimizing dlt", section "Yield pages instead of rows"
- more workers for normalize and load, sent by run.ts: "Optimizing dlt", section "Parallelism"
- strategy upsert with a primary key: "Merge loading"; rows that did not change are left alone (skip_unchanged_rows)
"""

import json
import sys
from pathlib import Path

import dlt
import pyarrow as pa
import pyarrow.json as paj

url, folder, columns, state = sys.argv[1:]
ARROW = {
    "text": pa.string(),
    "bigint": pa.int64(),
    "numeric": pa.float64(),
    "date": pa.date32(),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}
KEY = ["exchange", "trade_date", "symbol", "series"]
types = json.loads(columns)
schema = pa.schema([(name, ARROW[kind]) for name, kind in types.items()])
# The JSON reader of Arrow knows no days: they come as text and are cast.
as_read = pa.schema([(name, pa.string() if kind == "date" else ARROW[kind]) for name, kind in types.items()])


@dlt.resource(
    name="bhavcopy_cm",
    primary_key=KEY,
    write_disposition={"disposition": "merge", "strategy": "upsert", "skip_unchanged_rows": True},
)
def bhavcopy():
    options = paj.ParseOptions(explicit_schema=as_read, unexpected_field_behavior="error")
    for file in sorted(Path(folder).glob("*.jsonl")):
        yield paj.read_json(file, parse_options=options).cast(schema)


pipeline = dlt.pipeline(
    pipeline_name="peers",
    destination=dlt.destinations.postgres(credentials=url),
    dataset_name="peers",
    pipelines_dir=state,
)
pipeline.run(bhavcopy(), loader_file_format="parquet").raise_on_failed_jobs()
