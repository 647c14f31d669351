#!/usr/bin/env bash
# Runs the upstream conformance suite against bin/setpoint and prints what passed, by
# class and sig (doc.go says what the classes are). Exits 1 if a case of passing.txt
# was run and did not pass. The first run builds the suite: about 13 minutes of CPU.
#
#   SUITE=short       the part of the suite that `make test` runs: a tenth to build, under a minute to run
#   FOCUS=regexp      only cases whose names match
#   SKIP=regexp       no cases whose names match
#   CLASS=A,B         classes; with C or D the node is real, which wants root
#   MUST_PASS=1       only the cases of passing.txt
#   UPDATE=1          add to passing.txt what passes newly
#   PROCS=3           cases at once
#   TIMEOUT=3h        the longest that all may take
#   SERVERS=1         replicas of the control plane
#   NODES=3           three machines with a server and a real node each (root), as test/machines has them
#   KUBECONFIG_OF=f   examine this cluster instead of one of its own
#   LIST=DIR          the cases of cases.tsv there, and what is kept about them beside it (further, test/csi)
#   SUITE_FLAG=flag   one more flag of the suite
#   BESIDE=program    runs beside the cluster: is told the kubeconfig and KEEP, and prints `ready`
#   BUILD_ONLY=1      builds what is needed, for a run without network
#   SUITE_DIR=DIR     where what is built is kept; default: ~/.cache/setpoint-conformance
#   KEEP=DIR          where output and report go; default: a new folder below /tmp
#   STATIC=DIR        where busybox and bash-static are, for images; default: from Debian's packages
set -euo pipefail
cd "$(dirname "$0")"

setpoint=$PWD/../../bin/setpoint
suite_dir=${SUITE_DIR:-$HOME/.cache/setpoint-conformance}
keep=${KEEP:-$(mktemp -d /tmp/conformance-XXXXXX)}
class=${CLASS:-A,B}
ready_timeout_seconds=60
empty_timeout_seconds=60
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
server_pid= beside_pid= real_node= all_well=
[[ $class == *[CD]* || ${NODES:-} == 3 ]] && real_node=1
mkdir -p "$suite_dir" "$keep"

# empty_node waits for sandboxes too: of a pod that a case deletes by force the API
# knows nothing while its containers still have their grace period.
empty_node() {
  local deadline=$((SECONDS + empty_timeout_seconds))
  "$setpoint" kubectl --kubeconfig "$kubeconfig" delete pods --all --all-namespaces --now >/dev/null 2>&1 || true
  while compgen -G "$keep/cluster/runtime/sandboxes/*" >/dev/null && ((SECONDS < deadline)); do sleep 0.2; done
}
# remove_cluster removes nothing below which something is still mounted: rm goes through
# the mounts of pods into the machine's own folders.
remove_cluster() {
  local mounts
  mounts=$(awk -v below="$keep/cluster/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
  [[ -z $mounts ]] || xargs -d '\n' umount -l <<<"$mounts" || true
  if grep -qF " $keep/cluster/" /proc/self/mountinfo; then
    echo "conformance: left $keep/cluster as it is: something is mounted below" >&2
    return
  fi
  rm -rf --one-file-system "$keep/cluster"
}
finish() {
  if [[ -n $server_pid ]]; then
    # Containers outlive their agent: what an interrupted suite left must go first.
    [[ -z $real_node ]] || empty_node
    [[ -z $beside_pid ]] || { kill "$beside_pid" && wait "$beside_pid"; } 2>/dev/null || true
    kill "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
  fi
  remove_cluster
  rm -f "$keep/kubectl"
  # Of the short suite nobody reads what went well.
  [[ ${SUITE:-} != short || -z $all_well || -n ${KEEP:-} ]] || rm -rf "$keep"
}
trap finish EXIT

export CGO_ENABLED=0
link_flags() {
  local minor=${version#v1.} package=k8s.io/component-base/version
  echo "-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
}
build_suite() {
  e2e=$suite_dir/e2e-$version.test
  [[ -x $e2e ]] && return
  echo "conformance: building the suite of Kubernetes $version" >&2
  go test -c -vet=off -trimpath -o "$e2e" -ldflags "$(link_flags)" k8s.io/kubernetes/test/e2e
}
# sources is where the module lies, fetched if it was not.
sources() { go mod download -json k8s.io/kubernetes | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; }
# One file of the packages of the short suite imports the kubelet: they are built from a
# copy of the module without it, by a compiler that takes memory for time.
build_short_suite() {
  local copy=$keep/kubernetes
  e2e=$suite_dir/short-$version.test
  cp -r "$(sources)" "$copy"
  chmod -R u+w "$copy"
  rm "$copy/test/e2e/apimachinery/etcd_failure.go"
  cp go.mod "$keep/short.mod"
  cp go.sum "$keep/short.sum"
  go mod edit -replace "k8s.io/kubernetes=$copy" "$keep/short.mod"
  GOGC=400 go test -c -vet=off -modfile "$keep/short.mod" -trimpath -o "$e2e" -ldflags "$(link_flags)" ./short
  rm -rf "$copy"
}
if [[ ${SUITE:-} == short ]]; then
  build_short_suite
else
  build_suite
fi
go build -trimpath -o "$suite_dir/ginkgo" github.com/onsi/ginkgo/v2/ginkgo
go build -trimpath -o "$suite_dir/conformance" .

# The images that containers run, under upstream's names. No registry is asked.
images_dir=$suite_dir/images-$version
build_program() {
  [[ -x $suite_dir/$1-$version ]] || go build -trimpath -ldflags '-s -w' -o "$suite_dir/$1-$version" "$2"
}
pack_images() {
  local static=${STATIC:-$suite_dir/static/bin} program
  mkdir -p "$images_dir"
  go build -trimpath -ldflags '-s -w' -o "$suite_dir/client" ./images/client
  build_program agnhost k8s.io/kubernetes/test/images/agnhost
  build_program nonewprivs k8s.io/kubernetes/test/images/nonewprivs
  build_program sample-apiserver k8s.io/sample-apiserver
  build_program etcd go.etcd.io/etcd/server/v3
  for program in busybox bash; do
    [[ -n ${STATIC:-} || -d $suite_dir/static/usr/share/doc/$program-static ]] ||
      (cd "$keep" && apt-get -q download "$program-static" >&2 && dpkg-deb -x "$program-static"_*.deb "$suite_dir/static")
  done
  go run -trimpath ./images -busybox "$static/busybox" -bash "$static/bash-static" -client "$suite_dir/client" \
    -agnhost "$suite_dir/agnhost-$version" -nnp "$suite_dir/nonewprivs-$version" \
    -sample-apiserver "$suite_dir/sample-apiserver-$version" -etcd "$suite_dir/etcd-$version" \
    -module "$(sources)" -out "$images_dir/conformance.tar"
}
[[ -z $real_node ]] || pack_images
if [[ ${BUILD_ONLY:-} == 1 ]]; then
  all_well=1
  exit
fi

if [[ ${NODES:-} == 3 ]]; then
  cd ../..
  IMAGES=$images_dir/conformance.tar KEEP=$keep CLASS=$class exec go test -count=1 -v -timeout 4h -tags conformance -run '^TestConformance$' ./test/machines
fi

# The kubectl that is built in, unless the tests shall call another one: the binary under this name, because a case copies
# it into a pod.
kubectl=${KUBECTL:-$keep/kubectl}
[[ ! -x $setpoint ]] || ln -f "$setpoint" "$keep/kubectl" 2>/dev/null || cp "$setpoint" "$keep/kubectl"

kubeconfig=${KUBECONFIG_OF:-}
if [[ -z $kubeconfig ]]; then
  [[ -x $setpoint ]] || { echo "conformance: no bin/setpoint: run 'make build', or 'make conformance'" >&2; exit 2; }
  nodes=(--simulated-nodes 2)
  [[ -z $real_node ]] || nodes=(--images-dir "$images_dir")
  "$setpoint" dev --kubelet-config ../../deploy/kubelet-shared-disk.yaml --data-dir "$keep/cluster" --port 0 --servers "${SERVERS:-1}" "${nodes[@]}" --log-level warn >"$keep/setpoint.log" 2>&1 &
  server_pid=$!
  kubeconfig=$keep/cluster/admin.kubeconfig
  deadline=$((SECONDS + ready_timeout_seconds))
  # A node loads its images before it registers, and a suite that finds none runs nothing.
  until grep -q 'is ready' "$keep/setpoint.log" && "$kubectl" --kubeconfig "$kubeconfig" get nodes 2>/dev/null | grep -qw Ready; do
    if ((SECONDS >= deadline)) || ! kill -0 "$server_pid" 2>/dev/null; then
      cat "$keep/setpoint.log" >&2
      exit 2
    fi
    sleep 0.1
  done
fi

if [[ -n ${BESIDE:-} ]]; then
  "$BESIDE" "$kubeconfig" "$keep" >"$keep/beside.log" 2>&1 &
  beside_pid=$!
  until grep -q '^ready$' "$keep/beside.log"; do
    kill -0 "$beside_pid" 2>/dev/null || { cat "$keep/beside.log" >&2; exit 2; }
    sleep 0.1
  done
fi

flags=()
[[ -n ${LIST:-} ]] && flags+=(-dir "$LIST")
[[ -n ${SUITE_FLAG:-} ]] && flags+=(-suite-flag "$SUITE_FLAG")
[[ ${MUST_PASS:-} == 1 ]] && flags+=(-only-must-pass)
[[ ${UPDATE:-} == 1 ]] && flags+=(-update)
[[ ${SUITE:-} == short ]] && flags+=(-must-pass short/cases.txt -whole-list)
"$suite_dir/conformance" -kubeconfig "$kubeconfig" -ginkgo "$suite_dir/ginkgo" -e2e "$e2e" -kubectl "$kubectl" \
  -out "$keep" -class "$class" -focus "${FOCUS:-}" -skip "${SKIP:-^\$}" -timeout "${TIMEOUT:-3h}" -procs "${PROCS:-3}" "${flags[@]}"
all_well=1
