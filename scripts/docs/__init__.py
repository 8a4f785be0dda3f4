"""Generates parts of the documentation from the code that they describe."""
