"""The number of examples that hypothesis tries of a rule that takes more or less time than others."""

from hypothesis import settings

USUAL = 100


def examples(number: int) -> int:
    """Scales `number`, meant for the profile with USUAL examples, to the loaded profile. For decorators, which run when
    test modules are imported."""
    assert settings.default is not None
    return max(1, number * settings.default.max_examples // USUAL)
