"""Tests of lengths."""

import unittest

import lengths


class Lengths(unittest.TestCase):
    def test_no_length(self):
        self.assertEqual(lengths.feet(0), 0)

    def test_metres(self):
        self.assertAlmostEqual(lengths.metres(10), 3.048, 6)
