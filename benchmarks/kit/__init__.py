"""The parts that the benchmarks share, and that the studies use, too."""
