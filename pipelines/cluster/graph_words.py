"""The facts about a node of the graph in words, the same in every drawing. Pure."""

from rich import filesize

from pipelines.cluster.graph import Node
from stages.wording import counted

SIGNS = {"cross": "×", "union": "+", "join": "⋈", "group": "⊞"}
"""The signs of the ways to combine inputs."""


def size(node: Node) -> str:
    """The size of a repo's files; "" if it is not known."""
    if node.bytes is None:
        return ""
    return filesize.decimal(node.bytes) if node.bytes else "empty"


def state(node: Node) -> str:
    """The state of a pipeline, or the size of a repo."""
    return node.state if node.state else size(node)


def datums(node: Node) -> str:
    """The datums of a pipeline's job that is at work, or of its newest one."""
    job = node.job
    if job is None or not job.started:
        return ""
    if not job.total:
        return "no datums"
    counts = {"done": job.processed, "skipped": job.skipped, "failed": job.failed}
    words = ", ".join(f"{short(number)} {name}" for name, number in counts.items() if number)
    return f"{words or '0 done'} of {short(job.total)}"


def effort(node: Node) -> str:
    """The time of that job, and the GPUs that a worker requests, with those that are held."""
    time = "" if node.job is None or node.job.seconds is None else duration(node.job.seconds)
    gpus = counted(node.gpus, "GPU", "GPUs") if node.gpus else ""
    held = f", {node.held} in use" if node.gpus and node.held else ""
    return " · ".join(filter(None, (time, gpus + held)))


def short(number: int) -> str:
    """A count in at most six characters, up to 10¹²."""
    for limit, unit in ((10**9, "G"), (10**6, "M")):
        if number >= limit:
            return f"{number / limit:.4g}{unit}"
    return f"{number:,}" if number < 10**5 else f"{number // 1000}k"


def duration(seconds: float) -> str:
    """A time in at most seven characters."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes}:{rest:02} m"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02} h" if hours < 100 else f"{hours // 24} d"


def clipped(text: str, width: int) -> str:
    """The text, cut off with … if it is longer than that."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"
