"""Parts of the manual made for copying: a worker's unit file, and profiles for Temporal."""

import tomllib
from configparser import ConfigParser

from temporalio.envconfig import ClientConfigProfile

from engine.service import GRACE
from engine.worker_process import PUSH_SECONDS
from tests.docs.reading import ROOT, blocks, page


def test_the_unit_gives_a_worker_the_time_it_takes_to_stop() -> None:
    unit = ConfigParser(interpolation=None)
    # systemd's keys contain capitals.
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(ROOT / "examples/longhaul-worker.service")
    service = unit["Service"]
    assert int(service["TimeoutStopSec"]) > GRACE.total_seconds() + PUSH_SECONDS
    assert (service["KillSignal"], service["KillMode"]) == ("SIGTERM", "mixed")
    assert (ROOT / service["ExecStart"].split()[-1]).exists()
    assert service["User"] != "root"


def test_the_profiles_for_temporal_cloud_are_read() -> None:
    key, certificates = blocks(page("operations.md"), "toml")
    profile = ClientConfigProfile.load(
        "cloud", config_source=key, disable_env=True, config_file_strict=True
    )
    assert profile.to_client_connect_config()["tls"] is True
    assert profile.namespace == "longhaul.a1b2c"
    tls = ClientConfigProfile.load(
        "cloud", config_source=certificates, disable_env=True, config_file_strict=True
    ).tls
    assert tls
    paths = tomllib.loads(certificates)["profile"]["cloud"]["tls"]
    assert {str(tls.client_cert), str(tls.client_private_key)} == set(paths.values())
