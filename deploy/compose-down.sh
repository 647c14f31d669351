#!/usr/bin/env bash
# Ends the cluster of docker-compose.yml and deletes its data.
# $1: the compose command, "docker compose" or "docker-compose". PREFIX: see compose-env.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/compose-env.sh

compose=${1:-docker compose}
$compose down --volumes --remove-orphans
rm -rf "$folder"
