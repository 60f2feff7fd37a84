"""Filters, spectra, bandwidth, and the preparation of samples for a regression."""
