"""The 1 kHz loop: exchange with the boards, keep the limits, control, and hand on every sample.

`cycle` is one cycle, `runner` keeps the deadlines. One process, one thread; nothing here logs,
waits or touches a file while it runs. `daq.loop.setup` puts the parts together.
"""
