"""The loop as a process: its chores beside the cycle, status, timing, and what it watches."""
