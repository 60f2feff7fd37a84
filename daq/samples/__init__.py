"""Samples of the cycles: one of them, in batches, as columns, and those of the last minute."""
