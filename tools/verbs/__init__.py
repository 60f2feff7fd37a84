"""The verbs that are one module each."""
