"""Stands in for the Python of a stage: has the stage forked from a process that has imported what stages import
(`tests.forked_stages`), and ends as it does. Without that process, or if it refuses, it becomes the Python itself.

    python -I -S forked_python.py ADDRESS PYTHON ARGUMENT...

Starts with each stage, so it imports only what is built in.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import array
import marshal
import os
import sys

NAMESPACES = ("mnt", "ipc", "pid")
"""Those of the kernel's that a worker's process may have to itself."""

ACCEPTED = b"+"
"""The first answer; the second is the exit status."""

_LONGEST = 1024


def main() -> None:
    address, python, *arguments = sys.argv[1:]
    status = _forked(address, arguments)
    if status is None:
        os.execv(python, [python, *arguments])
    if status < 0:
        _signal.signal(-status, _signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _forked(address: str, arguments: list[str]) -> int | None:
    """The exit status of the stage, negative for a signal; None if it was not forked."""
    numbers = _open_files()
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    try:
        connection.connect(f"\0{address}".encode())
        namespaces = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in NAMESPACES]
    except OSError:  # none is there, or not in this network
        return None
    request = {
        "arguments": arguments,
        "variables": dict(os.environ),
        "directory": os.getcwd(),  # noqa: PTH109  see above
        "user": os.getresuid(),
        "processors": list(os.sched_getaffinity(0)),
        "numbers": numbers,
    }
    files = array.array("i", [*namespaces, *numbers])
    connection.sendmsg([marshal.dumps(request)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    if connection.recv(_LONGEST) != ACCEPTED:
        return None
    ended = connection.recv(_LONGEST)
    return int(marshal.loads(ended)) if ended else 1


def _open_files() -> list[int]:
    found = []
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        try:
            os.fstat(number)
        except OSError:  # that of the listing
            continue
        found.append(number)
    return found


if __name__ == "__main__":
    main()
