"""What watches every cycle, the state machine, and the one way to a stop."""
