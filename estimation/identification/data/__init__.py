"""Recordings as one regression problem: segments, prepared samples, triangular factors."""
