"""`creator` on documents that nobody here wrote: requirements cite the page they are on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from activities.documents import contains_quote, parse
from tests.activities.documents.real import Real
from tests.workflows.serving import Jobs

DOCUMENTS = {
    "pdf": "pypdf-7.1.0/resources/GeoBase_NHNC1_Data_Model_UML_EN.pdf",
    "docx": "python_docx-1.2.0/features/steps/test_files/sct-first-page-hdrftr.docx",
    "md": "pypdf-7.1.0/docs/dev/testing.md",
}
