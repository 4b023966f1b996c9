"""The facts about a node of the graph in words, the same in every drawing; and the graph as text. Pure."""

from collections.abc import Iterable

from rich import filesize

from pipelines.cluster.pipeline_graph import GraphEdge, GraphNode, PipelineGraph
from stages.datum.text_format import counted

SIGNS = {"cross": "×", "union": "+", "join": "⋈", "group": "⊞"}
"""The signs of the ways to combine inputs."""

CLASSES = {
    "success": "good",
    **dict.fromkeys(("running", "starting", "created", "finishing", "egressing"), "busy"),
    "waiting": "wait",
    **dict.fromkeys(("failure", "crashing", "killed", "unrunnable", "restarting"), "bad"),
}
"""What a state means for people, in every drawing; others mean nothing in particular."""


def size(node: GraphNode) -> str:
    """The size of a repo's files; "" if it is not known."""
    if node.bytes is None:
        return ""
    return filesize.decimal(node.bytes) if node.bytes else "empty"


def state(node: GraphNode) -> str:
    """The state of a pipeline, or the size of a repo."""
    return node.state if node.state else size(node)


def datums(node: GraphNode) -> str:
    """The datums of a pipeline's job that is at work, or of its newest one."""
    job = node.job
    if job is None or not job.started:
        return ""
    if not job.total:
        return "no datums"
    counts = {"failed": job.failed, "done": job.processed, "skipped": job.skipped}
    words = ", ".join(f"{short(number)} {name}" for name, number in counts.items() if number)
    return f"{words or '0 done'} of {short(job.total)}"


def effort(node: GraphNode) -> str:
    """The time of that job, and the GPUs that a worker requests, with those that are held."""
    time = "" if node.job is None or node.job.seconds is None else duration(node.job.seconds)
    gpus = f"{node.held}/{node.gpus} GPU" if node.gpus and node.held else counted(node.gpus, "GPU", "GPUs")
    return " · ".join(filter(None, (time, gpus if node.gpus else "")))


def short(number: int) -> str:
    """A count in at most five characters, up to 10¹²."""
    if number < 10**4:
        return f"{number:,}"
    unit, of = next(each for each in (("G", 10**9), ("M", 10**6), ("k", 10**3)) if number >= each[1])
    whole = number * 10 // of  # in tenths, rounded down, so that no count looks complete before it is
    return f"{whole // 10}{unit}" if whole >= 1000 or whole % 10 == 0 else f"{whole / 10}{unit}"


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


_COLOURS = {"good": "#2da44e", "busy": "#bf8700", "wait": "#8250df", "bad": "#d1242f"}
"""The colour of a border by class, visible on dark and on light paper."""

_ENTITIES = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "`": "#96;", "&": "#amp;"}


def mermaid(graph: PipelineGraph) -> str:
    """The graph as a flowchart of Mermaid, which GitHub, GitLab and many wikis draw."""
    ids = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart TD"]
    lines += [f"  {ids[node.name]}{_shape(node)}{_class(node)}" for node in graph.nodes]
    lines += [f"  {ids[edge.source]} {_arrow(edge)} {ids[edge.target]}" for edge in graph.edges]
    used = sorted({CLASSES[node.state] for node in graph.nodes if node.state in CLASSES})
    lines += [f"  classDef {name} stroke:{_COLOURS[name]},stroke-width:2px" for name in used]
    return "\n".join(lines) + "\n"


def _shape(node: GraphNode) -> str:
    words = (node.name, state(node), datums(node), effort(node))
    label = "<br>".join(map(_escaped, filter(None, words)))
    before, after = ("[(", ")]") if node.kind in ("repo", "cron") else ("([", "])") if node.kind == "service" else "[]"
    return f'{before}"{label}"{after}'


def _class(node: GraphNode) -> str:
    return f":::{CLASSES[node.state]}" if node.state in CLASSES else ""


def _arrow(edge: GraphEdge) -> str:
    words = ", ".join(_words(edge))
    return ("-.->" if edge.lazy else "-->") + (f"|{words}|" if words else "")


def _words(edge: GraphEdge) -> Iterable[str]:
    if edge.combined:
        yield edge.combined
    if edge.lazy:
        yield "lazy"


def _escaped(text: str) -> str:
    return "".join(_ENTITIES.get(character, character) for character in text)
