"""The one error that users see: a sentence, without a traceback."""


class LookalikeError(Exception):
    """A failure with a text that says what is wrong and what to do about it."""
