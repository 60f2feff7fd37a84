"""The verb `mock`."""
