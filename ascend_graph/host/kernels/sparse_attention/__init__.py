"""Attention of queries to selected keys: by blocks, by an indexer, or by compressed keys."""
