"""The version of the distribution, read by the build and by `armature --version`."""

__version__ = "0.1.0"
