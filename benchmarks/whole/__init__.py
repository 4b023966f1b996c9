"""The whole pipeline, from pictures to sheets."""
