"""lookalike in Python: search a library of pictures from notebooks and programs.

import lookalike

library = lookalike.Library.open()
library.search("mine.jpg", k=5)
"""

from lookalike.changes import Changes
from lookalike.facets import FacetCount, Facets
from lookalike.labels import Label, Labels
from lookalike.library import Library
from lookalike.neighbours import Neighbour, Neighbours
from pipelines.errors import LookalikeError

__all__ = ["Changes", "FacetCount", "Facets", "Label", "Labels", "Library", "LookalikeError", "Neighbour", "Neighbours"]
