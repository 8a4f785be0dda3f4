"""The command line.

`commands` has a module for each command, or for those of a kind: its arguments and its output.
`start`, `signals` and `schedules` prepare what commands send; `jobs`, `job_files`, `projects`,
`trials` and `requirements` read what there is, with the rendering beside the reading.
`checks` are those of `doctor` and `config check`; `report` builds the report and its page.
"""
