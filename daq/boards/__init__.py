"""Boards: an exchange over a link, what became of it, what the wire can carry, a first look."""
