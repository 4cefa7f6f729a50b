"""NDJSON bytes in, Arrow batches out: two decoders with one meaning (docs/adr/0003)."""
