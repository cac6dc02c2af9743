# Sourced by the other scripts: paths, and Python environments that are created once and reused.
#
# An environment is stamped with a checksum of its inputs, so a second run reuses it and needs no network. SUNZI_VENV
# is the path of the development environment (default: .venv in the project; the others are created next to it, with a
# suffix). SUNZI_PYTHON is the Python to create them with.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${SUNZI_VENV:-$root/.venv}
case $venv in
/*) ;;
*) venv=$PWD/$venv ;;
esac
venv=${venv%/}

say() { printf '==> %s\n' "$*" >&2; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# usable_python PROGRAM: is it Python 3.11 or later? A shim on PATH may exist without a Python behind it.
usable_python() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# find_python: print the Python to create environments with. 3.11 comes first, because the pins were frozen for it.
find_python() {
    local name candidate names=(python3.11 python3 python3.12 python3.13 python3.14)
    [ -z "${SUNZI_PYTHON:-}" ] || names=("$SUNZI_PYTHON")
    for name in "${names[@]}"; do
        while IFS= read -r candidate; do
            if usable_python "$candidate" && "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
                printf '%s\n' "$candidate"
                return
            fi
        done < <(type -aP "$name" || true)
    done
    fail "no Python 3.11 or later with venv and ensurepip was found; install python3.11 (on Debian also" \
        "python3.11-venv), or set SUNZI_PYTHON to its path"
}

# digest PYTHON FILE...: print a checksum of the files and of the Python version.
digest() {
    "$1" -c '
import hashlib, pathlib, sys
checksum = hashlib.sha256(sys.version.encode())
for name in sys.argv[1:]:
    checksum.update(hashlib.sha256(pathlib.Path(name).read_bytes()).digest())
print(checksum.hexdigest())' "${@:2}"
}

# stamped ENVIRONMENT STAMP DIGEST: was this step already done with the same inputs?
stamped() { [ -f "$1/.sunzi-$2" ] && [ "$(cat "$1/.sunzi-$2")" = "$3" ]; }

stamp() { printf '%s\n' "$3" >"$1/.sunzi-$2"; }

# quiet_pip ENVIRONMENT ARGUMENT...: run pip, printing errors only.
quiet_pip() {
    "$1/bin/python" -m pip --quiet --quiet --disable-pip-version-check --no-input "${@:2}"
}

# environment ENVIRONMENT PINS: create it if necessary and install requirements/PINS.txt, which pins files by hash.
environment() {
    local python wanted
    if ! usable_python "$1/bin/python"; then
        # Clear only Python environments: a mistyped SUNZI_VENV must not delete other files.
        [ ! -e "$1" ] || [ -f "$1/pyvenv.cfg" ] ||
            fail "$1 exists and is not a Python environment; remove it or set SUNZI_VENV to another path"
        python=$(find_python)
        say "creating the environment $1 with $python"
        "$python" -m venv --clear "$1"
    fi
    wanted=$(digest "$1/bin/python" "$root"/requirements/*.txt)
    if ! stamped "$1" "$2" "$wanted"; then
        say "installing requirements/$2.txt in $1 (once, until the pins change)"
        quiet_pip "$1" install --require-hashes --requirement "$root/requirements/$2.txt"
        stamp "$1" "$2" "$wanted"
    fi
}

# project ENVIRONMENT: install the project there in editable mode, if it is not yet.
project() {
    local wanted
    wanted=$(digest "$1/bin/python" "$root/pyproject.toml" "$root/src/sunzi/_version.py")
    if ! stamped "$1" project "$wanted $root"; then
        say "installing the project in $1 in editable mode"
        quiet_pip "$1" install --no-build-isolation --no-deps --editable "$root"
        stamp "$1" project "$wanted $root"
    fi
}

# development: prepare the environment for tests, linters and benchmarks.
development() {
    environment "$venv" dev
    project "$venv"
}
