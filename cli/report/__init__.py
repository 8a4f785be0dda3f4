"""A job's report: its figures, and a page that shows them."""
