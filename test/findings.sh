#!/usr/bin/env bash
# Runs every script of findings/, and prints a line for each: ok, or FAIL and what it printed. FOCUS=regexp chooses by name.
set -uo pipefail
cd "$(dirname "$0")/.."

# limit is for one script: it fetches modules and compiles them.
limit=10m

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
for script in findings/*.sh; do
  name=$(basename "$script" .sh)
  [[ $name =~ ${FOCUS:-} ]] || continue
  begun=$SECONDS
  if timeout "$limit" "$script" >"$log" 2>&1; then
    echo "ok    $name  $((SECONDS - begun)) s"
  else
    echo "FAIL  $name  $((SECONDS - begun)) s: it is not as the script says any more"
    sed 's/^/      /' "$log"
    failed=1
  fi
done
exit $failed
