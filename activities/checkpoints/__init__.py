"""Checkpoints: files stored as git trees, steps as commits, the workspace as a projection."""

from activities.checkpoints.checkpoint_errors import (
    CheckpointMissing,
    FileMissing,
    FilesError,
    GitNotInstalled,
    NewerCheckpoint,
    PathRefused,
    RemoteUnavailable,
    RootError,
)
from activities.checkpoints.checkpoint_repository import Checkpoints, LogEntry, open_checkpoints
from activities.checkpoints.entry_names import parse_path, unescape_name
from activities.checkpoints.folder_edits import take_edits
from activities.checkpoints.history_copy import copy_checkpoint
from activities.checkpoints.projection import update_projection
from activities.checkpoints.tree_diff import Change, diff_files, diff_lines, merge_files
from activities.checkpoints.tree_files import FileEntry, Files
from activities.checkpoints.workspaces_root import Root, job_folder_name

__all__ = [
    "Change",
    "CheckpointMissing",
    "Checkpoints",
    "FileEntry",
    "FileMissing",
    "Files",
    "FilesError",
    "GitNotInstalled",
    "LogEntry",
    "NewerCheckpoint",
    "PathRefused",
    "RemoteUnavailable",
    "Root",
    "RootError",
    "copy_checkpoint",
    "diff_files",
    "diff_lines",
    "job_folder_name",
    "merge_files",
    "open_checkpoints",
    "parse_path",
    "take_edits",
    "unescape_name",
    "update_projection",
]
