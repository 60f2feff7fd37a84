"""What the cycle reads and writes: a board, and each joint on it."""
