"""What a start sends: input from arguments and files, checked and staged."""
