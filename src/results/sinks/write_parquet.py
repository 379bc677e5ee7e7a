"""Turns a CSV file into a Parquet file of given types: python3 write_parquet.py IN OUT KEY=int64 KEY=double KEY=string ..."""

import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

source, target, *columns = sys.argv[1:]
schema = pa.schema([(key, getattr(pa, {"double": "float64"}.get(kind, kind))())
                    for key, kind in (column.rsplit("=", 1) for column in columns)])
reader = pa.csv.open_csv(
    source, parse_options=pa.csv.ParseOptions(newlines_in_values=True),
    convert_options=pa.csv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True,
                                          quoted_strings_can_be_null=False))
rows = 0
with pa.parquet.ParquetWriter(target, schema) as writer:
    for batch in reader:
        writer.write_batch(batch)
        rows += batch.num_rows
written = pa.parquet.ParquetFile(target)
assert written.schema_arrow == schema and written.metadata.num_rows == rows
print(rows)
