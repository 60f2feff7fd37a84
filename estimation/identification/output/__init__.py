"""What is made of a result: tables, a robot file, a payload."""
