#!/usr/bin/env bash
# go vet -vettool=test/vettool.sh: Go's vet for what is named, nothing for what that
# imports. By itself vet type-checks all of it, longer than everything of ours takes, to
# learn which functions of others print like fmt.Printf.
#
#   VET=FILE   Go's vet: go tool -n vet
set -euo pipefail

vet=${VET:-$(go tool -n vet)}
config=${!#}
if [[ $config == -V=full ]]; then
  # What Go's own vet finds is cached by its version: not to be taken for this one's.
  "$vet" -V=full | sed 's/$/-of-ours/'
  exit
fi
if [[ $config == *.cfg ]] && grep -q '"VetxOnly": true' "$config"; then
  facts=$(sed -n 's/^\t"VetxOutput": "\(.*\)",\?$/\1/p' "$config")
  : >"$facts"
  exit
fi
exec "$vet" "$@"
