"""What runs next, and its runs: the plan, jobs, services and spouts."""
