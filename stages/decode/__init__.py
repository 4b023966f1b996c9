"""From any file to normalised pixels, a thumbnail and a hash. Knows no repo and no stage."""
