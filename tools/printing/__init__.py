"""What verbs print: tables and JSON."""
