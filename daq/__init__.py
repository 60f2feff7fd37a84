"""The robot computer: links, boards, and (by later work) the loop, the stream and the recorder."""
