"""Programs of tests that import TensorFlow, each in a process of its own."""

GC_PRELUDE = "import gc; gc.disable(); import atexit; atexit.register(gc.freeze)\n"
"""The first line of such a program. As in stages.datum.contract.load, what TensorFlow's import makes is not scanned for
garbage: that takes almost as long as the import itself, and again at the end of the process."""
