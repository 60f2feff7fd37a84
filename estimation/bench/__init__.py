"""The friction bench: from the recording of one joint to its friction and motor parameters."""
