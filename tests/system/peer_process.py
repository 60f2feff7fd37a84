"""Ill-behaved peers of a loop, each a process of its own: `python3 peer_process.py KIND RUNTIME …`.

Prints a line when it is at it.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from typing import Any

import zmq

MODES = ("off", "hold", "position", "velocity", "current", "torque", "play", "home", "", "x" * 30)
JOINTS = ("joint1", "joint2", "joint3", "joint4", "joint5", "")


def main() -> None:
    kind, runtime, *rest = sys.argv[1:]
    kinds = {
        "deaf": deaf,
        "subscribing": subscribing,
        "flooding": flooding,
        "silent": silent,
        "random": commanding,
    }
    kinds[kind](runtime, *rest)


def deaf(runtime: str) -> None:
    """Subscribes to everything and never reads."""
    socket = zmq.Context().socket(zmq.SUB)
    socket.rcvhwm = 1
    socket.subscribe(b"")
    socket.connect(f"ipc://{runtime}/stream")
    print("listening", flush=True)
    time.sleep(600)


def subscribing(runtime: str) -> None:
    """Subscribes to ever more topics as fast as it can: the publisher has to digest them all."""
    context = zmq.Context()
    sockets = [context.socket(zmq.SUB) for _ in range(20)]
    for socket in sockets:
        socket.connect(f"ipc://{runtime}/stream")
    print("subscribing", flush=True)
    while True:
        for number in range(20_000):
            sockets[number % len(sockets)].subscribe(b"%0200d" % number)
        for number in range(20_000):
            sockets[number % len(sockets)].unsubscribe(b"%0200d" % number)


def flooding(runtime: str) -> None:
    """Asks as fast as it can, and reads every answer."""
    socket = _commands(runtime)
    print("asking", flush=True)
    while True:
        for _ in range(50):
            socket.send(b'{"command":"status"}')
        while socket.poll(0):
            socket.recv_multipart()


def silent(runtime: str) -> None:
    """Asks as fast as it can, and never reads an answer."""
    socket = _commands(runtime)
    print("asking", flush=True)
    while True:
        socket.send(b'{"command":"status"}')


def commanding(runtime: str, seed: str, duration_s: str) -> None:
    """Random commands, one after the other; prints which answers came how often."""
    chance = random.Random(int(seed))
    print("commanding", flush=True)
    answers: Counter[str] = Counter()
    until_s = time.monotonic() + float(duration_s)
    context = zmq.Context()
    with context, _commands(runtime, context) as socket:
        while time.monotonic() < until_s:
            parts = _request(chance)
            socket.send_multipart(parts)
            if not socket.poll(30_000):
                raise SystemExit(f"no answer to {parts!r:.500}")
            answer = json.loads(socket.recv_multipart()[-1])
            answers["accepted" if answer["ok"] else answer["error"]["code"]] += 1
    print(json.dumps(answers), flush=True)


def _commands(runtime: str, context: zmq.Context[Any] | None = None) -> Any:
    socket = (context or zmq.Context()).socket(zmq.DEALER)
    socket.linger = 0
    socket.connect(f"ipc://{runtime}/commands")
    return socket


def _request(chance: random.Random) -> list[bytes]:
    kind = chance.random()
    if kind < 0.15:
        return [chance.randbytes(chance.randrange(200)) or b"?"]
    command = json.dumps({"id": chance.randrange(1000), **_command(chance)}).encode()
    if kind < 0.25:
        place = chance.randrange(len(command))
        return [command[:place] + chance.randbytes(3) + command[place:]]
    if kind < 0.3:
        return [command, chance.randbytes(chance.choice((0, 64, 640, 70_000)))]
    if kind < 0.32:
        return [command] * chance.randrange(3, 40)
    return [command]


def _command(chance: random.Random) -> dict[str, Any]:
    name = chance.choices(
        ("set-mode", "set-gains", "enable", "reset", "status", "record-mark", "home", "play-begin",
         "play-rows", "play-start", "play-stop", "disable", "stop", "make-coffee"),
        (40, 10, 10, 8, 8, 5, 3, 3, 3, 3, 3, 1, 1, 2),
    )[0]  # fmt: skip
    joints = chance.sample(JOINTS[: chance.choice((4, 4, 4, 6))], chance.randrange(5))
    count = len(joints) or 4

    def numbers(size: float) -> list[float]:
        wild = chance.choice((1.0, 1.0, 1.0, 3.0, 1e3, 1e300))
        return [chance.uniform(-size, size) * wild for _ in range(chance.choice((count, count, 1)))]

    if name == "set-mode":
        mode = chance.choice(MODES)
        size = {"position": 6.0, "velocity": 4.0, "current": 8.0, "torque": 10.0}.get(mode, 0.0)
        target = numbers(size) if size or chance.random() < 0.1 else []
        return {"command": name, "mode": mode, "joints": joints, "target": target}
    if name == "set-gains":
        return {"command": name, "joints": joints, "kp_a_per_rad": [abs(x) for x in numbers(3.0)]}
    if name == "record-mark":
        return {"command": name, "text": "x" * chance.choice((1, 100, 201))}
    if name == "play-begin":
        return {"command": name, "rows": chance.choice((-1, 2, 10_000, 10**9))}
    if name == "play-rows":
        return {"command": name, "first": chance.randrange(3)}
    return {"command": name}


if __name__ == "__main__":
    main()
