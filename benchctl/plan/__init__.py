"""Profile, topology and backends become a planned run: pure, nothing is asked of any host."""
