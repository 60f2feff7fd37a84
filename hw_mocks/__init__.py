"""The hardware that is not there: boards at byte level, physics, faults, emulated devices.

A mock robot is several mock boards that share one simulated physics. It runs in lockstep with a
virtual clock inside a test, or in real time in a process of its own behind an emulated
`/dev/spidev` or serial port. It knows the wire (`firmware_protocol`) and the robot description, and
nothing of the host's code.
"""
