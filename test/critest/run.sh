#!/usr/bin/env bash
# Judges bin/setpoint's runtime by critest, with images of its own and no network but
# loopback (doc.go). Exits 1 if a case fails that explained.tsv does not explain.
#
#   FOCUS=regexp  only cases whose names match
#   SKIP=regexp   no cases whose names match
#   UPDATE=1      write RESULTS.md
#   KEEP=DIR      where logs and report go; default: a new folder below /tmp, removed if all is well
#   STATIC=DIR    where a static busybox is; default: from Debian's package
set -euo pipefail
cd "$(dirname "$0")"

((EUID == 0)) || { echo "critest: real containers need root" >&2; exit 2; }
setpoint=$PWD/../../bin/setpoint
[[ -x $setpoint ]] || { echo "critest: no bin/setpoint: run 'make build', or 'make critest'" >&2; exit 2; }
suite_dir=${SUITE_DIR:-$HOME/.cache/setpoint-critest}
keep=${KEEP:-$(mktemp -d /tmp/critest-XXXXXX)}
mkdir -p "$suite_dir" "$keep"
keep=$(cd "$keep" && pwd)
version=$(go list -m -f '{{.Version}}' sigs.k8s.io/cri-tools)

export CGO_ENABLED=0
suite=$suite_dir/critest-$version
if [[ ! -x $suite ]]; then
  echo "critest: building the suite of cri-tools $version" >&2
  go test -c -vet=off -trimpath -o "$suite" -ldflags '-s -w' sigs.k8s.io/cri-tools/cmd/critest
fi
go build -trimpath -o "$suite_dir/judge" .
go build -trimpath -ldflags '-s -w' -o "$suite_dir/" ./webserver ./nnp
static=${STATIC:-$suite_dir/static/bin}
[[ -x $static/busybox ]] ||
  (cd "$keep" && apt-get -q download busybox-static >&2 && dpkg-deb -x busybox-static_*.deb "$suite_dir/static" && rm busybox-static_*.deb)

flags=(-setpoint "$setpoint" -critest "$suite" -busybox "$static/busybox" -webserver "$suite_dir/webserver" \
  -nnp "$suite_dir/nnp" -dir "$keep" -focus "${FOCUS:-}" -skip "${SKIP:-}")
[[ ${UPDATE:-} != 1 ]] || flags+=(-update)

# The names of the registries are those of loopback here, and nothing else can be reached.
# A case makes shared memory and leaves it: it ends with the namespace.
printf '127.0.0.1 localhost registry.k8s.io gcr.io k8s.gcr.io\n127.0.0.1 %s\n' "$(hostname)" >"$keep/hosts"
export KEEP_HOSTS=$keep/hosts
unshare --net --ipc --mount --propagation slave bash -euo pipefail -c '
  ip link set lo up
  mount --bind "$KEEP_HOSTS" /etc/hosts
  exec "$@"' inside "$suite_dir/judge" "${flags[@]}"
[[ -n ${KEEP:-} ]] || rm -rf "$keep"
