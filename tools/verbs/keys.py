"""`armature keys`: makes, allows and lists the keys by which a robot is reached over a network."""

from __future__ import annotations

import argparse
from pathlib import Path

from daq.stream.keys import allow_key, load_keys, make_keys
from tools.shared.cli import OK, Verbs, add_json_option, add_verb, print_json

_EXAMPLE = """\
  armature keys new robot_keys robot                    # on the robot
  armature keys new my_keys laptop                      # on the laptop
  # copy each .pub file (never a .key file) to the other computer, then
  armature keys allow robot_keys my_keys/laptop.pub     # on the robot; restart its loop
  armature keys allow my_keys robot_keys/robot.pub      # on the laptop
  armature keys list my_keys
  # then: armature status --connect tcp://192.168.1.10:5555 --keys my_keys"""


def add_to(verbs: Verbs, summary: str) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "keys", handler=None, summary=summary, example=_EXAMPLE)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    directory_help = "holds one key pair and, under allowed/, the public keys of those it trusts"

    new = add_verb(
        actions,
        "new",
        handler=_new,
        summary="make a key pair: NAME.key is secret, NAME.pub is for everyone",
        example="  armature keys new robot_keys robot",
    )
    new.add_argument("directory", type=Path, metavar="DIR", help=directory_help)
    new.add_argument("name", metavar="NAME", help="of this computer")

    allow = add_verb(
        actions,
        "allow",
        handler=_allow,
        summary="trust the owner of a public key: a robot its clients, a client its one robot",
        example="  armature keys allow robot_keys laptop.pub",
    )
    allow.add_argument("directory", type=Path, metavar="DIR", help=directory_help)
    allow.add_argument("public_file", type=Path, metavar="FILE.pub")

    show = add_verb(
        actions,
        "list",
        handler=_list,
        summary="show whose keys a directory holds",
        example="  armature keys list robot_keys",
    )
    show.add_argument("directory", type=Path, metavar="DIR", help=directory_help)
    add_json_option(show)


def _new(arguments: argparse.Namespace) -> int:
    keys = make_keys(arguments.directory, arguments.name)
    print(f"{keys.directory / keys.name}.key  secret: leave it where it is")
    print(f"{keys.directory / keys.name}.pub  public: copy it to the other computer")
    return OK


def _allow(arguments: argparse.Namespace) -> int:
    name = allow_key(arguments.directory, arguments.public_file)
    print(f"{name} is allowed; a loop that is running learns of it when it is started again")
    return OK


def _list(arguments: argparse.Namespace) -> int:
    keys = load_keys(arguments.directory)
    if arguments.json:
        allowed = {name: key.decode() for name, key in keys.allowed.items()}
        print_json({"name": keys.name, "public_key": keys.public_key.decode(), "allowed": allowed})
        return OK
    print(f"own key  {keys.public_key.decode()}  {keys.name}")
    for name, key in keys.allowed.items():
        print(f"allowed  {key.decode()}  {name}")
    if not keys.allowed:
        print("allowed  nobody yet: armature keys allow DIR FILE.pub")
    return OK
