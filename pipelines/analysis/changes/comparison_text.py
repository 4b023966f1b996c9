"""A comparison of two moments in words, for the terminal and the page."""

from collections.abc import Iterator, Sequence

from pipelines.analysis.changes.answer_comparison import AnswerComparison
from pipelines.analysis.changes.library_state import LibraryState
from pipelines.analysis.changes.pipeline_versions import SettingChange
from stages.datum.text_format import counted

_SHORT = 12
_NAMED = 3
_LONGEST_VALUE = 40  # characters of a parameter that is shown


def moment(state: LibraryState) -> str:
    """A moment: its id and its time, in this machine's zone."""
    return f"{state.id[:_SHORT]} ({state.started.astimezone():%Y-%m-%d %H:%M})"


def summary(comparison: AnswerComparison) -> str:
    """One line: the number of queries whose neighbours differ, and of those that are new or gone."""
    parts = [f"{counted(len(comparison.questions), 'query has', 'queries have')} other neighbours"]
    parts += [f"{len(comparison.new_queries):,} new"] if comparison.new_queries else []
    parts += [f"{len(comparison.gone_queries):,} gone"] if comparison.gone_queries else []
    return ", ".join(parts)


def changed(comparison: AnswerComparison) -> Iterator[str]:
    """What changed in between, a line each."""
    if comparison.pictures is None:
        yield "pictures: unknown, since preprocess did not compute one of the two"
    elif comparison.pictures:
        lists = (
            ("added", comparison.pictures.added),
            ("replaced", comparison.pictures.changed),
            ("removed", comparison.pictures.removed),
        )
        yield f"pictures: {'; '.join(f'{word} {few(names)}' for word, names in lists if names) or 'unchanged'}"
    if comparison.model is not None:
        yield f"model: {comparison.model[0] or 'none'} → {comparison.model[1] or 'none'}"
    yield from map(setting, comparison.settings)


def setting(changed: SettingChange) -> str:
    """A parameter that changed, with its values unless one of them is long, as an input is."""
    where = ", ".join(changed.pipelines)
    if max(len(changed.before), len(changed.after)) > _LONGEST_VALUE:
        return f"{changed.name}: changed in {where}"
    return f"{changed.name}: {changed.before or 'none'} → {changed.after or 'none'} in {where}"


def reasons(comparison: AnswerComparison) -> Iterator[str]:
    """The number of queries by the reason of a difference, in one line; none without differences."""
    if comparison.reasons:
        yield f"queries by reason: {', '.join(f'{reason} {number:,}' for reason, number in comparison.reasons.items())}"


def few(names: Sequence[str]) -> str:
    """Names if they are few, otherwise their number."""
    return ", ".join(names) if len(names) <= _NAMED else f"{len(names):,}"
