"""The verb `identify`."""
