#!/usr/bin/env bash
# Measures two builds in turn, so that what else the machine does falls on both alike, and prints the ratios of the pairs with their
# spread. Each round starts each build on empty folders, and the next one begins with the other build.
#
#   OLD=commit          the build to compare with: a commit, which is built, or the path of a program
#   NEW=bin/setpoint    likewise
#   ROUNDS=5            rounds
#   WHAT="..."          of idle memory list watch sched write read (three servers), and collect statuses (collect.sh); default: all but those two
#   RESULTS=file        keep the result lines
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${OLD:?a commit or a program: make bench-compare OLD=commit}"
dir=$(mktemp -d /tmp/compare-XXXXXX)
finish() {
  for tree in "$dir"/trees/*/; do git worktree remove --force "$tree" >/dev/null 2>&1 || true; done
  rm -rf "$dir"
}
trap finish EXIT
results=${RESULTS:-$dir/results.jsonl}
[[ ! -s $results ]] || { echo "compare: $results has other results: they would be paired with these" >&2; exit 2; }
mkdir "$dir/trees"

# program COMMIT-OR-PATH: prints a path; builds a commit.
program() {
  if [[ -f $1 && -x $1 ]]; then
    realpath "$1"
    return
  fi
  local commit
  commit=$(git rev-parse --verify --quiet --short "$1^{commit}") || { echo "compare: $1 is neither a program nor a commit" >&2; return 2; }
  echo "building $(git log -1 --format='%h of %cd: %s' --date=short "$commit")" >&2
  git worktree add --quiet --detach "$dir/trees/$commit" "$commit" || return
  make --no-print-directory -C "$dir/trees/$commit" build >/dev/null || return
  echo "$dir/trees/$commit/bin/setpoint"
}
old=$(program "$OLD") || exit
new=$(program "${NEW:-bin/setpoint}") || exit
(cd test/bench && CGO_ENABLED=0 go build -o "$dir/bench" .)

three=() alone=()
for what in ${WHAT:-idle memory list watch sched write read}; do
  case $what in
  collect | statuses) alone+=("$what") ;;
  *) three+=("$what") ;;
  esac
done
for ((round = 1; round <= ${ROUNDS:-5}; round++)); do
  order=("old=$old" "new=$new")
  ((round % 2)) || order=("new=$new" "old=$old")
  echo "bench: round $round of ${ROUNDS:-5}" >&2
  for build in "${order[@]}"; do
    if ((${#three[@]} > 0)); then
      SETPOINT=${build#*=} TARGET=${build%%=*} WHAT=${three[*]} RUNS=1 KILLS=0 test/bench/cluster.sh "$dir/bench" "$results"
    fi
    if ((${#alone[@]} > 0)); then
      ROUNDS=1 WHAT=${alone[*]} test/bench/collect.sh "$build" >>"$results"
    fi
  done
done
"$dir/bench" ratios old new <"$results"
