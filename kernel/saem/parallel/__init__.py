"""Programs for many devices: exchanges, shard_map, pmap and partitioning."""
