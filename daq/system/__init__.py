"""The computer: real-time scheduling, the state of the host, the runtime directory, locks."""
