"""Commands that explain and measure answers."""
