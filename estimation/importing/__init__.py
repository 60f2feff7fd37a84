"""Measurements from foreign files: how they are read, and what their numbers mean."""
