"""The generated parts of the documentation, each made from the code it tells about."""
