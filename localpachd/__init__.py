"""localpachd: an embedded server that speaks Pachyderm's API on one machine."""
