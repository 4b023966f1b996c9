"""Pipeline specifications as files: read, drafted, patched by overlays, written. Knows no server and judges nothing."""
