#!/usr/bin/env bash
# Tries the probe of agent/net/network/probe beside real firewalls, in namespaces of their own. Each has to be found, and the command that is
# told has to end it. Needs root, and Debian's packages ufw, firewalld, dbus and iptables.
set -euo pipefail
cd "$(dirname "$0")/../.."

((EUID == 0)) || { echo "beside: network namespaces need root" >&2; exit 2; }
for program in ufw firewalld firewall-cmd dbus-daemon iptables iptables-legacy; do
  command -v "$program" >/dev/null || { echo "beside: there is no $program here" >&2; exit 2; }
done
WORK=$(mktemp -d)
export WORK SETPOINT_BESIDE=1
trap 'rm -rf "$WORK"' EXIT
CGO_ENABLED=0 go test -c -o "$WORK/probe.test" ./agent/net/network/probe
cp -a /etc/ufw /etc/firewalld "$WORK"
# What they write they write to copies, and with the namespace of processes the daemons end.
unshare --mount --pid --fork --kill-child --mount-proc sh -euc '
  mount --bind "$WORK/ufw" /etc/ufw
  mount --bind "$WORK/firewalld" /etc/firewalld
  mount -t tmpfs none /run
  "$WORK/probe.test" -test.v -test.run "^TestBesideFirewalls$"'
