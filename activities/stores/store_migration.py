"""Migrates a store's tables, safe with any number of processes starting at once."""

from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from activities.checkpoints.locks import file_lock
from activities.stores.relational_store import READS
from activities.stores.store_errors import StoreTooNewError

FOLDER = Path(__file__).with_name("migrations")
LOCK_SECONDS = 10.0
LOCK_NUMBER = 5_641_701
"""Key of the advisory lock in PostgreSQL."""


def migrate_store(engine: Engine, lock: Path) -> None:
    """Apply the missing migrations.

    Args:
        lock: Lock file that excludes other processes of this host (SQLite).

    Raises:
        StoreTooNewError: It has migrations that this version does not know.
        TimeoutError: Another process held the lock too long.
    """
    if engine.dialect.name == "sqlite":
        # The first connection sets the file's journal mode, which two cannot do at once.
        with file_lock(lock, seconds=LOCK_SECONDS):
            # Check with a reading transaction, so that readers wait for no writer.
            with engine.connect().execution_options(**{READS: True}) as looking, looking.begin():
                is_current = _current_revision(looking) == _migration_scripts().get_current_head()
            if not is_current:
                with engine.begin() as connection:
                    _apply_migrations(connection)
    else:
        with engine.begin() as connection:
            # The lock is released with the transaction, however it ends.
            connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": LOCK_NUMBER})
            _apply_migrations(connection)


def _current_revision(connection: Connection) -> str | None:
    revision = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in _migration_scripts().walk_revisions()}
    if revision is not None and revision not in known:
        raise StoreTooNewError(
            f"it has the revision {revision}, which this version does not know. Run the "
            "version that made it, or another store."
        )
    return revision


def _apply_migrations(connection: Connection) -> None:
    scripts = _migration_scripts()
    if _current_revision(connection) == scripts.get_current_head():
        return
    environment = EnvironmentContext(
        _alembic_config(), scripts, fn=lambda revision, _: scripts._upgrade_revs("head", revision)
    )
    with environment:
        environment.configure(connection=connection, transactional_ddl=True)
        with environment.begin_transaction():
            environment.run_migrations()


@cache
def _alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


@cache
def _migration_scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_alembic_config())
