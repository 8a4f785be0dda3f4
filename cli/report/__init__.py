"""A job's report: its figures, gathered once, and a page that shows them."""
