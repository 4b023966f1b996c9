"""A service for tests: it answers every request with the text of /pfs/in/name."""

import contextlib
import urllib.request

from tests.conditions import until

SERVER = """
import http.server, os, sys, urllib.request
pfs = os.environ.get("LOCALPACHD_PFS", "/pfs")
print("serving", open(pfs + "/in/name").read(), flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        if self.path == "/exit":
            os._exit(3)
        text = open(pfs + "/in/name").read()
        if self.path == "/peer":
            text = urllib.request.urlopen("http://127.0.0.1:" + os.environ["PEER_PORT"]).read().decode()
        self.send_response(200); self.end_headers(); self.wfile.write(text.encode())
http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
"""
"""A program that serves at the port that it is given. A request for /exit ends it, one for /peer is answered with the
answer of the server outside."""


def get(port: int, path: str = "/", wanted: str = "") -> str:
    """The first answer at a port, once a program listens there, or the first that equals `wanted`."""

    def answer() -> str:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply,
        ):
            found = str(reply.read().decode())
            return found if wanted in ("", found) else ""
        return ""

    return until(answer)
