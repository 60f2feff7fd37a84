"""Edits of a robot file's text that keep its comments."""
