"""The activities, one module for each name in Temporal's history."""
