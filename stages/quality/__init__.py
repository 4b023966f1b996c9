"""Measures and judgements of pictures, copies and answers. Knows no page and no stage."""
