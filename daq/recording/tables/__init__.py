"""Tables of numbers from CSV, NPY, NPZ and HDF5 files of any origin.

What the numbers mean is decided by those who read them: trajectories and import. Sizes are checked
before memory is taken, nothing is executed, no link followed, and a damaged file gets a sentence.
"""
