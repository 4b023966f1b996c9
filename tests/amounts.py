"""How many examples hypothesis tries of a rule that takes longer, or less long, than others."""

from hypothesis import settings

USUAL = 100


def examples(number: int) -> int:
    """So many where others get USUAL; in a soak as many times more as they get there. For decorators: it goes by the
    profile that is loaded when test modules are."""
    assert settings.default is not None
    return number * settings.default.max_examples // USUAL
