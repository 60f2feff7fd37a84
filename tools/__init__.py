"""The `armature` command, one module per verb. Only here are mocks joined to the host's code."""
