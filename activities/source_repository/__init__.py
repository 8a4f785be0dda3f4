"""A person's code as the start of a job or project, and the branch with what they made of it.

`repository_fetch` brings it to this host, `workspace_repository` puts it into a job's workspace,
`job_branch` makes commits of the job's work, and `branch_push` pushes them.
"""
