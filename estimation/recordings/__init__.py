"""Segments of a recording at a constant rate: rows, times, outliers, what the boards did."""
