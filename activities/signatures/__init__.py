"""Signatures of people and operators."""
