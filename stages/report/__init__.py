"""Pages, sheets and plots: what people read. Knows no stage, no Pachyderm and no HTTP."""
