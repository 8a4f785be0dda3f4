"""Checkpoints: a job's files as git trees, its steps as commits, its folder as a projection."""

from activities.checkpoints.diff import Change, diff
from activities.checkpoints.edits import take_edits
from activities.checkpoints.errors import (
    CheckpointMissing,
    FileMissing,
    FilesError,
    NoGit,
    PathRefused,
    RemoteAway,
    RootError,
)
from activities.checkpoints.files import Entry, Files
from activities.checkpoints.history_copy import copy_into
from activities.checkpoints.line_diff import diff_lines
from activities.checkpoints.names import unescape
from activities.checkpoints.paths import parse
from activities.checkpoints.projection import project
from activities.checkpoints.repository import Checkpoints, LogEntry, open_checkpoints
from activities.checkpoints.root import Root, folder_name

__all__ = [
    "Change",
    "CheckpointMissing",
    "Checkpoints",
    "Entry",
    "FileMissing",
    "Files",
    "FilesError",
    "LogEntry",
    "NoGit",
    "PathRefused",
    "RemoteAway",
    "Root",
    "RootError",
    "copy_into",
    "diff",
    "diff_lines",
    "folder_name",
    "open_checkpoints",
    "parse",
    "project",
    "take_edits",
    "unescape",
]
