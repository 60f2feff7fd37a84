"""How bytes travel between this computer and a board; what they mean is for `daq.boards`.

Hardware libraries are imported only by the module that uses them, and only when a link is opened.
"""
