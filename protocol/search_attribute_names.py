"""Names of the search attributes that jobs set if the server has them registered."""

AGENT = "LonghaulAgent"
STATUS = "LonghaulStatus"
PHASE = "LonghaulPhase"
MODEL = "LonghaulModel"
NAMES = (AGENT, STATUS, PHASE, MODEL)
"""All have type Keyword."""
