"""Least squares and what friction adds to it."""
