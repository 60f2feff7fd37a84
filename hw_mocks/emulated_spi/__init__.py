"""Emulated /dev/spidev devices: unmodified programs talk to a board in another process."""
