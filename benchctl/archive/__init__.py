"""An archive in PostgreSQL: runs of many stores, which many people read.

A run is measured into its store, and pushed from there when it has ended. Its record, which is a
store without samples, comes back as it was. Beside it are rows for SQL: each figure, each flow,
what the hosts counted. Samples are arrays, in a partition for each month. Those of old months can
move to Parquet files. psycopg is the extra ``benchctl[archive]``. It is imported when an archive is
opened.
"""
