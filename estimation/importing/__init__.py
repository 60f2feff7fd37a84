"""Other people's files as recordings: names, columns, units, times, checks."""
