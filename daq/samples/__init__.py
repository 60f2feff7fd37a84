"""What one cycle measured, batches of it, the columns made of it, and the last minute of it."""
