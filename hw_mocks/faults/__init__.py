"""Scripted faults, and the wire that carries them."""
