"""`python -m localpachd`: imports the program and runs it.

No garbage is collected among the imports, and what they made is exempt from it for good: to look at all of it again and
again takes a fifth of the time of a start.
"""

import gc
import importlib
import sys

if __name__ == "__main__":
    gc.disable()
    program = importlib.import_module("localpachd.program")
    gc.freeze()
    gc.enable()
    sys.exit(program.main())
