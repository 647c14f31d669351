#!/usr/bin/env bash
# Builds bin/setpoint and runs all tests. The output ends with Go's own summary, one line for each package.
#
#   RACE=0          without the race detector: no C compiler needed
#   RACE=full       every test in full with it (make race): much longer
#   LONG=1          every test in full (make long), not in its short form
#   COMPOSE=0       without the cluster in Docker; COMPOSE=1: fail if it cannot run
#   TEST_FLAGS=...  more flags for go test
set -uo pipefail
cd "$(dirname "$0")/.."

# The longest package, the scripts, took from nine to nineteen minutes; this is for a machine
# that has other things to do.
package_timeout=30m
[[ ${RACE:-1} != full ]] || package_timeout=150m
forms=(-short)
[[ ${RACE:-1} != full && ${LONG:-0} != 1 ]] || forms=()
# Packages run beside each other, one more than fit: some wait, for time or for a linker.
packages_at_once=${PACKAGES_AT_ONCE:-$(($(nproc) + 1))}

static_package=$(go list ./agent)
linker_flags=(-ldflags '-s -w') # without symbols a link takes a sixth less CPU time

export CGO_ENABLED=0
if [[ ${RACE:-1} != 0 ]]; then
  CGO_ENABLED=1
  # Else each program sleeps a second before it ends, in case another goroutine has a race to report: there are hundreds.
  export GORACE=atexit_sleep_ms=0
fi

# As in the Makefile: for what compiles and links. Tests run as they are, but for those with the race detector, which take a seventh
# less CPU time with it.
compiler_gogc=400

case ${RACE:-1} in
0 | 1 | full) ;;
*)
  echo "run: RACE is 0, 1 or full" >&2
  exit 2
  ;;
esac

failed=0 # everything runs, whatever fails before

# What fails is run again, alone: test/again says what that excuses, and adds to this list.
again_dir=$(mktemp -d)
declare -A begun
# stop ends what runs beside, with all its programs, and says what it had said.
stop() {
  local name
  for name in "${!begun[@]}"; do
    kill -TERM -- "-${begun[$name]}" 2>/dev/null || continue
    wait "${begun[$name]}"
    tail -n 20 "$again_dir/$name.out"
  done
  rm -rf "$again_dir"
}
trap stop EXIT
trap 'exit 130' INT TERM
export NEEDED_ANOTHER_RUN=$again_dir/needed AGAIN=$again_dir/again
CGO_ENABLED=0 GOGC=$compiler_gogc go build -o "$AGAIN" ./test/again || exit 1
# What each program of tests takes is noted, so that it can be seen where the time goes.
export COSTS=$again_dir/costs
cost=$again_dir/cost
CGO_ENABLED=0 GOGC=$compiler_gogc go build -o "$cost" ./test/cost || exit 1
# Most packages share a program with others of their tree: a link takes as long as many a test. Each has its own where all runs in full,
# so that none rests on what another imports, and with flags that only go test knows.
together=
if ((${#forms[@]} > 0)) && [[ -z ${TEST_FLAGS:-} ]]; then
  together=$again_dir/together
  CGO_ENABLED=0 GOGC=$compiler_gogc go build -o "$together" ./test/together || exit 1
fi

module=$(go list -m)

# Asked the same way everywhere, without the race detector, vet uses what is built for
# bin/setpoint; go test need not have it look again.
VET=$(go tool -n vet)
export VET
vettool=$PWD/test/vettool.sh
vet() { CGO_ENABLED=0 GOGC=$compiler_gogc go vet -vettool="$vettool" "$@"; }
looked_at() { vet ./...; }

# plain runs tests without the race detector.
plain() { CGO_ENABLED=0 GOGC=$compiler_gogc "$AGAIN" -exec "env -u GOGC $cost" "$@"; }

# part runs one of the functions below, and says what it cost. It has a shell of its own, whose children are its alone.
part() (
  begin=$SECONDS status=0
  "$1" || status=1
  times >"$again_dir/times-$1"
  cpu=$(awk -F'[ms ]+' 'NR == 2 { print int($1 * 60 + $2 + $3 * 60 + $4) }' "$again_dir/times-$1")
  echo "run: $1 took $((SECONDS - begin)) s, and $cpu s of CPU time"
  exit "$status"
)
# begin starts a part beside the others, with a group of processes of its own, which stop can end; finish waits for it and prints what it said.
begin() {
  set -m
  part "$1" >"$again_dir/$1.out" 2>&1 &
  set +m
  begun[$1]=$!
}
finish() {
  wait "${begun[$1]}" || failed=1
  unset "begun[$1]"
  cat "$again_dir/$1.out"
}

built() { make --no-print-directory build; }

# The load harness, the conformance suite, the comparisons with upstream and with kstatus and the place of envtest are modules of their own.
modules() {
  local module status=0
  for module in test/bench test/conformance test/differential test/differential/topology test/differential/lists test/judges/kstatus setpointtest/envtest setpointtest/envtest/manager; do
    (cd "$module" && vet . && plain -count=1 -vet=off "${forms[@]}" -- .) || status=1
  done
  return "$status"
}
# Upstream's own judgement of the API, in short (make conformance: all of it).
conformance() { SUITE=short CLASS=A PROCS=6 test/conformance/run.sh; }
# The tests of others' clients run with programs that take long to build (make clients).
clients() {
  local status=0
  (cd test/clients && vet ./...) || status=1
  (cd test/envtest && vet ./...) || status=1
  (cd test/ui && vet .) || status=1
  (cd test/operators && vet . && plain -count=1 -vet=off -run '^Test(Pages|Ginkgo)' -- .) || status=1
  return "$status"
}
compose() { vet -tags compose ./test/compose && test/compose.sh; }

# Scripts type their commands with people's binary, whose servers print what docs/walkthrough.md says. With the race detector
# servers say more, and are not static, so that no container can hold them: some scripts are skipped then.
export SETPOINT_TEST_BINARY=$PWD/bin/setpoint

test_flags=(-count=1 -vet=off -timeout "$package_timeout" -p "$packages_at_once" "${forms[@]}")
# shellcheck disable=SC2206 # several flags in one variable
test_flags+=(${TEST_FLAGS:-})

tested() { go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...; }
# light lists the packages whose tests link nothing of Kubernetes, all of which would have to be compiled once more for the detector.
# Commands and drivers of whole clusters are not among them: they would be a second look at the same servers.
light() { go list -test -f '{{.ImportPath}} {{join .Deps " "}}' ./... | awk '$1 ~ /\.test$/ && !/ k8s\.io\// { sub(/\.test$/, "", $1); print $1 }' | grep -vE '^[^ ]+/setpoint/(cmd|test)/'; }
# detected lists what the detector watches: with RACE=full everything, else those light packages that start goroutines themselves, in their
# code or in their tests: the store with raft, sessions, shares. Servers, loops and agents are watched by make race.
starts='^\s*go [a-zA-Z_][^ ]*\(|\.Go\(|AfterFunc\('
detected() {
  local package
  case ${RACE:-1} in
  0) return ;;
  full) tested ;;
  *)
    light | while read -r package; do
      ! grep -qE "$starts" ".${package#"$module"}"/*.go || echo "$package"
    done
    ;;
  esac
}
# longest_first orders package names: what runs for minutes begins first, so that the end does not wait for it.
longest_first() {
  local long
  long=$(go list ./cmd/setpoint ./server ./controllers ./raftstore/... ./setpointtest/... ./test/... ./internal/house)
  { printf '%s\n' "$@" | grep -xF "$long"; printf '%s\n' "$@" | grep -vxF "$long"; } | awk '!seen[$0]++'
}

mapfile -t with < <(detected | sort)
mapfile -t without < <(comm -23 <(tested | sort) <(printf '%s\n' "${with[@]}"))
if ((${#with[@]} + ${#without[@]} < 300)) || { [[ ${RACE:-1} != 0 ]] && ((${#with[@]} < 30)); }; then
  echo "run: only ${#with[@]} and ${#without[@]} packages with tests were found" >&2
  exit 1
fi

# Those without the detector run in one call, with the scripts, which mostly wait.
without_detector() {
  # shellcheck disable=SC2046 # names of packages have no spaces
  TOGETHER=$together plain "${linker_flags[@]}" "${test_flags[@]}" -- $(longest_first "${without[@]}")
}
# Its tests' own executable is the demo image: nothing else is in there, no C library either, so with the detector (cgo) it is linked statically.
statically() {
  GOGC=$compiler_gogc "$AGAIN" -exec "$cost" -race -ldflags '-s -w -linkmode external -extldflags -static' "${test_flags[@]}" -- "$static_package"
}
with_detector() {
  # shellcheck disable=SC2046 # as above
  TOGETHER=$together GOGC=$compiler_gogc "$AGAIN" -exec "$cost" -race "${linker_flags[@]}" "${test_flags[@]}" -- $(longest_first $(printf '%s\n' "${with[@]}" | grep -vxF "$static_package"))
}

# What the detector watches is compiled for it alone, so it begins beside the build, which seldom has work for two processors.
# With RACE=full it is everything, scripts that need bin/setpoint too.
[[ ${RACE:-1} != 1 ]] || begin with_detector
part built || exit 1
# The cluster in Docker mostly waits.
begin compose
for name in looked_at modules clients; do part "$name" || failed=1; done
part conformance || failed=1
finish compose
if [[ ${RACE:-1} == 1 ]]; then finish with_detector; fi
((${#without[@]} == 0)) || part without_detector || failed=1
[[ ${RACE:-1} != full ]] || part with_detector || failed=1
! printf '%s\n' "${with[@]}" | grep -qxF "$static_package" || part statically || failed=1

# dearest prints the packages whose tests took most, both ways that they ran in together.
dearest() {
  echo "run: of that, tests took $(awk '{ s += $1 } END { print int(s) }' "$COSTS") s of CPU time; most in (CPU time, time that passed):"
  awk -v root="$PWD/" '{ cpu[$3] += $1; wall[$3] += $2 }
    END { for (dir in cpu) { name = dir; sub(root, "", name); printf "run: %7.1f s %7.1f s  %s\n", cpu[dir], wall[dir], name } }' "$COSTS" |
    sort -k 2 -rn | head -15
}
[[ ! -s $COSTS ]] || dearest

if [[ -s $NEEDED_ANOTHER_RUN ]]; then
  echo "needed another run (each wants a line in test/chance.md: seen when, cause or suspicion):"
  sort -u "$NEEDED_ANOTHER_RUN" | sed -E 's/^([^ ]+) ?(.*)$/| `\1` | `\2` | | |/'
fi
exit "$failed"
