#!/bin/sh
# Creates .venv and installs the pinned packages of these files: sh scripts/setup.sh FILE…
# A copy of each file in .venv records what is installed, so a second run is quick.
set -eu
venv=.venv

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
complete() { "$1" -c 'import venv, ensurepip' 2>/dev/null; }

# Prints the first Python on PATH that can create the environment, or reports what is missing.
find_python() {
    bare=
    for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        new_enough "$python" || continue
        if complete "$python"; then
            echo "$python"
            return
        fi
        bare=${bare:-$python}
    done
    if [ -n "$bare" ]; then
        version=$("$bare" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        cat >&2 <<END
Python $version is here ($(command -v "$bare")), but not its modules venv and ensurepip, which
make .venv. Install them, then run make again:
    Debian, Ubuntu    sudo apt install python$version-venv
    others            the package of your system that completes Python $version
END
        return 1
    fi
    cat >&2 <<END
Longhaul needs Python 3.11 or newer; found: $(python3 --version 2>/dev/null || echo "no python3").
Install it, then run make again; PYTHON=/path/to/python3 names one that is not on PATH.
    Debian 12, Ubuntu 24.04 or newer    sudo apt install python3 python3-venv
    Fedora                              sudo dnf install python3
    macOS                               brew install python
END
    return 1
}

if ! new_enough "$venv/bin/python" || ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    python=$(find_python)
    # Remove what an older Python or an interrupted run left behind.
    new_enough "$venv/bin/python" || rm -rf "$venv"
    "$python" -m venv "$venv"
fi
for pins in "$@"; do
    cmp -s "$pins" "$venv/$pins" && continue
    echo "Installing $pins into $venv; the first time this takes a minute." >&2
    # Most modules of development packages are never imported; the others compile on import.
    compile=--compile
    [ "$pins" = requirements-dev.txt ] && compile=--no-compile
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input $compile \
        --no-deps --require-hashes --requirement "$pins"
    cp "$pins" "$venv/$pins"
done
