"""scikit-learn beside the GPU, on all cores and with a part of the queries."""

import sys

from sklearn.neighbors import NearestNeighbors

from studies.gpu import goals, notebook, vectors
from studies.gpu.notebook import Notebook, timed
from studies.gpu.vectors import QUERIES, K


def peers(notes: Notebook) -> None:
    """Brute force, scaled to all queries, and the index that the article's call makes."""
    library, some = vectors.library(), vectors.queries()[: QUERIES // 5]
    fitted = NearestNeighbors(n_neighbors=K, algorithm="brute", n_jobs=-1).fit(library)
    seconds, _ = timed(lambda: fitted.kneighbors(some))
    taken = {"queries": len(some), "s": round(seconds, 2), "scaled to all queries, s": round(seconds * 5, 1)}
    notes.note(goals.SKLEARN, taken)
    seconds, _ = timed(lambda: NearestNeighbors(n_neighbors=K, n_jobs=-1).fit(library))
    notes.note("scikit-learn as the article calls it (algorithm auto): fit, s", round(seconds, 2))


if __name__ == "__main__":
    sys.exit(notebook.main({"peers": peers}))
