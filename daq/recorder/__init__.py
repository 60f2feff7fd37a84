"""The recorder: from the loop's batches to a journal that survives anything, and on to HDF5."""
