"""Like `test_lost_host`, with a bucket of an object store as the remote."""

import pytest

from tests.buckets import conditional_server, create_bucket
from tests.crash import test_lost_host
from tests.crash.begun import Begun, Place
from tests.crash.site import Site

pytest.importorskip("obstore")
pytest.importorskip("moto")


async def trial(place: Place) -> list[Site]:
    """Run the job on one host, undisturbed, and at the same time on hosts that are lost."""
    with conditional_server() as endpoint:
        return await test_lost_host.lose_hosts(place, create_bucket(endpoint), "-bucket")


async def test_the_other_host_ends_the_job_as_the_undisturbed_one(begun: Begun) -> None:
    test_lost_host.check_sites(await begun(trial))
