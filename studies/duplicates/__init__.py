"""Files of which some are copies and others only look alike, and the programs that find the copies."""
