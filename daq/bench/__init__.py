"""The friction bench: what is driven on one joint, and how the loop drives it."""
