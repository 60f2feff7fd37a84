"""What surrounds each fault, saved from the spool as a recording of its own."""
