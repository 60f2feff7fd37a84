"""Boards at byte level: the control law, encoders, current sensors."""
