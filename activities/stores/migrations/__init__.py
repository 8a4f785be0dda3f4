"""How the tables come to be, a step a file. Another store adds a file of its own."""
