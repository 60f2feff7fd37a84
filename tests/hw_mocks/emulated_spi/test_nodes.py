"""What programs see of the emulated nodes in /dev, and what they must not notice."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hw_mocks.emulated_spi.server import SpidevServer
from hw_mocks.emulated_spi.shim import shim_environment

pytestmark = pytest.mark.compiler


def test_python_finds_the_nodes(board: Any) -> None:
    board.run_python(
        """
        import glob, pathlib
        assert sorted(glob.glob("/dev/spidev*")) == ["/dev/spidev0.0", "/dev/spidev0.1"]
        assert "null" in os.listdir("/dev")
        directory = os.open("/dev", os.O_RDONLY)
        for _ in range(2):  # a stream on a descriptor is rewound
            assert {"spidev0.0", "spidev0.1", "null"} <= set(os.listdir(directory))
        entries = {entry.name: entry for entry in os.scandir("/dev")}
        assert stat.S_ISCHR(entries["spidev0.0"].stat().st_mode)
        assert not entries["spidev0.0"].is_file()
        assert pathlib.Path("/dev/spidev0.1").is_char_device()
        assert os.path.realpath("/dev/spidev0.0") == "/dev/spidev0.0"
        for missing in ("/dev/spidev0.2", "/dev/spidev0.00", "/dev/spidev", "/dev/spidev0.0/x"):
            assert not os.path.exists(missing)
            assert error_of(os.open, missing, os.O_RDWR) == errno.ENOENT
        assert error_of(os.open, "/dev/spidev0.2", os.O_RDWR | os.O_CREAT) == errno.ENOENT
        assert error_of(os.open, "/dev/spidev0.0", os.O_DIRECTORY) == errno.ENOTDIR
        assert error_of(os.open, "/dev/spidev0.0", os.O_CREAT | os.O_EXCL) == errno.EEXIST
        """
    )


def test_every_path_to_a_node_leads_to_the_emulated_one(board: Any) -> None:
    """A real device must not be reached because a program writes its path in another way."""
    board.run_python(
        """
        os.chdir("/usr")
        for directory in ("/dev//", "/dev/./", "../dev/", "/usr/../dev/"):
            path = directory + "spidev0.0"
            assert stat.S_ISCHR(os.stat(path).st_mode)
            os.close(os.open(path, os.O_RDWR))
        for missing in ("/dev/spidev32766.0", "/dev//spidev9.9"):
            assert error_of(os.open, missing, os.O_RDWR) == errno.ENOENT
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fopen.restype = libc.fopen64.restype = ctypes.c_void_p
        for function in (libc.fopen, libc.fopen64):
            assert function(b"/dev/spidev0.0", b"r+") is None
            assert ctypes.get_errno() == errno.EOPNOTSUPP
        assert libc.fopen(b"/dev/null", b"r")
        """
    )


def test_every_way_to_ask_gives_the_same_character_device(board: Any) -> None:
    board.run_python(
        """
        path = "/dev/spidev0.1"
        directory = os.open("/dev", os.O_RDONLY)
        node = os.open("spidev0.1", os.O_RDWR, dir_fd=directory)
        os.chdir("/dev")
        known = [os.stat(path), os.lstat(path), os.fstat(node), os.stat("spidev0.1")]
        known.append(os.stat("spidev0.1", dir_fd=directory))
        assert len({(s.st_dev, s.st_ino, s.st_rdev, s.st_mode) for s in known}) == 1
        assert known[0].st_mode == stat.S_IFCHR | 0o660
        assert os.stat("/dev/spidev0.0").st_ino != known[0].st_ino
        assert os.access(path, os.R_OK | os.W_OK) and not os.access(path, os.X_OK)
        assert os.access("spidev0.1", os.R_OK, dir_fd=directory)
        assert os.access(path, os.R_OK, effective_ids=True)
        os.chdir("/")
        assert not os.path.exists("spidev0.1")
        assert subprocess.run(["stat", "-c%i %F", path], capture_output=True, text=True).stdout == (
            f"{known[0].st_ino} character special file\\n"
        )
        buffer = ctypes.create_string_buffer(256)  # as a program built for an old glibc asks
        assert ctypes.CDLL(None).__xstat(1, path.encode(), buffer) == 0
        assert int.from_bytes(buffer[8:16], sys.byteorder) == known[0].st_ino
        """
    )


def test_two_emulations_are_different_devices(board: Any) -> None:
    question = ("stat", "-c%d:%i", "/dev/spidev0.0")
    first = board.run(*question)
    other = board.directory / "other"
    with SpidevServer(other, ["/dev/spidev0.0"], lambda transfer: transfer.tx):
        board.environment = shim_environment(other, os.environ)
        assert board.run(*question) != first


def test_shells_and_coreutils_see_and_use_the_nodes(board: Any) -> None:
    assert board.run("ls", "-l", "/dev/spidev0.0").startswith("crw-rw----")
    for shell in ("sh", "bash"):
        assert board.run(shell, "-c", "echo /dev/spidev*") == "/dev/spidev0.0 /dev/spidev0.1\n"
        board.run(shell, "-c", "test -e /dev/spidev0.0 && test -c /dev/spidev0.1")
        board.run(shell, "-c", "test -r /dev/spidev0.0 && ! test -e /dev/spidev0.7")
    assert (
        board.run("find", "/dev", "-maxdepth", "1", "-name", "spidev0.1", "-type", "c")
        == "/dev/spidev0.1\n"
    )
    assert board.run("sh", "-c", "head -c 4 /dev/spidev0.0 | od -An -tx1").split() == ["ff"] * 4


@pytest.mark.parametrize(
    "command", ["printf hello >", "echo hello | cat >", "echo hello | dd status=none of="]
)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_redirected_program_writes_to_the_board(board: Any, shell: str, command: str) -> None:
    board.run(shell, "-c", f"{command}/dev/spidev0.0")
    board.run_python("assert previous(open_spi()).rstrip() == b'hello'")


def test_other_programs_notice_nothing(board: Any, tmp_path: Path) -> None:
    file = tmp_path / "file"
    script = f"echo hi > {file}; cat {file}; test -e /dev/spidev0.0 && echo 'a b' | tr ' ' '\\n'"
    assert board.run("sh", "-c", script) == "hi\na\nb\n"
    assert board.run("bash", "-c", script) == "hi\na\nb\n"
    board.run_python(
        f"""
        import select, socket, tempfile
        left, right = socket.socketpair()
        left.setblocking(False)
        right.sendall(b"x")
        assert select.select([left], [], [], 5)[0] and left.recv(9) == b"x"
        left.close(), right.close()
        with tempfile.TemporaryDirectory() as directory:
            for name in "ab":
                open(os.path.join(directory, name), "w").close()
            assert sorted(os.listdir(directory)) == ["a", "b"]
        with open({str(file)!r}, "r+b", buffering=0) as opened:
            assert opened.read() == b"hi\\n" and opened.write(b"!") == 1
            assert os.fstat(opened.fileno()).st_size == 4
        assert error_of(os.stat, "/nowhere") == errno.ENOENT
        assert error_of(os.read, 999, 1) == errno.EBADF
        assert error_of(os.dup, 999) == errno.EBADF
        """
    )


def test_without_the_variable_the_shim_does_nothing(board: Any) -> None:
    del board.environment["ARMATURE_SPIDEV_DIR"]
    expected = Path("/dev/spidev0.0").exists()
    board.run_python(f"assert os.path.exists('/dev/spidev0.0') == {expected}")


def test_another_preloaded_library_keeps_working(
    board: Any, compile_c: Callable[..., Path]
) -> None:
    other = compile_c(
        """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <string.h>
        int open64(const char *path, int flags, int mode)
        {
            int (*next)(const char *, int, int) = dlsym(RTLD_NEXT, "open64");
            return next(strcmp(path, "/elsewhere") == 0 ? "/dev/null" : path, flags, mode);
        }
        """,
        "-shared",
        "-fPIC",
    )
    shim = board.environment["LD_PRELOAD"]
    for preload in (f"{shim}:{other}", f"{other}:{shim}"):
        board.environment["LD_PRELOAD"] = preload
        board.run_python("os.open('/elsewhere', os.O_RDWR); assert open_spi().xfer2([1]) == [0xFE]")


def test_a_socket_that_is_not_ours_stays_a_socket(board: Any) -> None:
    path = board.directory.parent / f"{board.directory.name}.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        try:
            board.run_python(
                f"""
                import socket
                mine = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                mine.connect({str(path)!r})
                assert os.write(os.dup(mine.fileno()), b"x") == 1
                assert stat.S_ISSOCK(os.fstat(mine.fileno()).st_mode)
                mine.close()
                """
            )
        finally:
            path.unlink()
