"""Running a loop: options, boards, emulation, processes."""
