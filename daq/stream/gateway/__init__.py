"""The process that owns every socket, and the loop's end of the pipe to it."""
