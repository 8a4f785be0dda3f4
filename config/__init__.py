"""Configuration as data: defaults, agents and prompts, and the loader that checks them."""
