#!/bin/sh
# Puts the setpoint binary of a release on this machine: install.sh FROM [TO]
#
#   FROM  a folder or a URL that holds what make release wrote: setpoint-linux-ARCH.gz and SHA256SUMS
#   TO    the folder for the binary, /usr/local/bin if it is not given
#
# Nothing is written to TO before the sums are right, and then the file is replaced at once: programs that run go on with the old one.
set -eu

die() { echo "install: $*" >&2; exit 1; }

[ $# -ge 1 ] && [ $# -le 2 ] || die "usage: install.sh FROM [TO]"
from=${1%/} to=${2:-/usr/local/bin}

case $(uname -s) in Linux) ;; *) die "there are binaries for Linux only: docs/tutorial.md says what other systems do" ;; esac
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) die "there is no binary for $(uname -m), only for x86_64 and aarch64" ;;
esac
name=setpoint-linux-$arch

[ -d "$to" ] || die "$to is no folder: make it, or name another one"
[ -w "$to" ] || die "$to cannot be written: run this as root, or name another folder"

work=$(mktemp -d)
trap 'rm -rf "$work" "$to/.setpoint.new"' EXIT

# fetch FILE into the work folder.
fetch() {
  case $from in
  *://*) command -v curl >/dev/null || die "curl is missing: install it, or name a folder"
    curl -fsSL --max-time 600 --max-filesize 536870912 -o "$work/$1" "$from/$1" || die "$from/$1 cannot be fetched" ;;
  *) cp "$from/$1" "$work/$1" 2>/dev/null || die "$from/$1 cannot be read: is $from what 'make release' wrote?" ;;
  esac
}

fetch SHA256SUMS
fetch "$name.gz"

# check FILE against the sums.
check() {
  want=$(awk -v name="$1" '$2 == name { print $1 }' "$work/SHA256SUMS")
  [ -n "$want" ] || die "SHA256SUMS does not name $1: it is of another release"
  [ "$(sha256sum "$work/$1" | cut -d ' ' -f 1)" = "$want" ] || die "$1 is not what SHA256SUMS says: it is damaged, or of another release"
}

check "$name.gz"
gunzip "$work/$name.gz"
check "$name"
install -m 755 "$work/$name" "$to/.setpoint.new" || die "$to cannot be written"
mv -f "$to/.setpoint.new" "$to/setpoint"
echo "installed $to/setpoint"
