#!/usr/bin/env bash
# Runs the tests that packages.txt names on Debian's kernel, in qemu (README.md). Exits 1 if one fails, or if none ran.
#
#   KERNEL=stable    Debian's kernel of the release that this machine's apt has; backports: the newer one of Debian 12's backports;
#                    or the path of a package linux-image-*.deb
#   CGROUP=v2        v1, hybrid
#   ONLY=regexp      only these packages
#   TESTS=regexp     only these tests of them
#   TIME_LIMIT=7200  seconds for everything that runs in the machine
#   ACCEL=kvm|tcg    default: kvm where it works
#   KEEP=DIR         where disk and output go; default: a new folder below /tmp, removed if all is well
set -euo pipefail
cd "$(dirname "$0")"

kernel=${KERNEL:-stable}
cgroup=${CGROUP:-v2}
time_limit_seconds=${TIME_LIMIT:-7200}
cache=${VM_CACHE:-$HOME/.cache/setpoint-vm}
disk_size=6G
memory=3G
processors=2
# 2 MiB each: tests take what they need of them, the rest is no one else's.
huge_pages=64

die() { echo "vm: $*" >&2; exit 2; }
need() { command -v "$1" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null || die "no $1: apt-get install $2"; }
need qemu-system-x86_64 'qemu-system-x86 (on Debian, as root)'
need dpkg-deb dpkg
need mkfs.ext4 e2fsprogs
need busybox busybox-static
need xz xz-utils
need mkswap util-linux
[[ $(uname -m) == x86_64 ]] || die "packages.txt is built for amd64, and the machine that emulates it as well"
export PATH=$PATH:/usr/sbin:/sbin

keep=${KEEP:-$(mktemp -d /tmp/vm-XXXXXX)}
mkdir -p "$keep" "$cache"
keep=$(cd "$keep" && pwd)

# backports runs apt with a list of sources of its own: the machine's stays as it is.
backports() {
  local command=$1 state=$cache/backports
  shift
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main' >"$state/sources.list"
  "$command" -q -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$state/lists" \
    -o "Dir::Cache=$state" -o APT::Sandbox::User=root "$@"
}
stable() { "$1" -q -o APT::Sandbox::User=root "${@:2}"; }

# download leaves the package of a kernel in the cache and prints its path. linux-image-amd64 only depends on the newest one.
download() {
  local from=$1 package
  [[ $from != backports ]] || backports apt-get update >&2
  package=$("$from" apt-cache show linux-image-amd64 | awk '/^Depends: linux-image-/ { print $2; exit }')
  [[ -n $package ]] || die "apt knows no linux-image-amd64: apt-get update"
  compgen -G "$cache/${package}_*.deb" >/dev/null || (cd "$cache" && "$from" apt-get download "$package" >&2)
  compgen -G "$cache/${package}_*.deb" | tail -1
}
case $kernel in
stable | backports) kernel=$(download "$kernel") ;;
*.deb) [[ -f $kernel ]] || die "no $kernel" ;;
*) die "KERNEL=$kernel: stable, backports or a package" ;;
esac
unpacked=$cache/$(basename "$kernel" .deb)
if [[ ! -d $unpacked ]]; then
  rm -rf --one-file-system "$unpacked.part"
  dpkg-deb -x "$kernel" "$unpacked.part"
  mv "$unpacked.part" "$unpacked"
fi
vmlinuz=$(echo "$unpacked"/boot/vmlinuz-*)
version=${vmlinuz##*/vmlinuz-}
for modules in "$unpacked/lib/modules/$version" "$unpacked/usr/lib/modules/$version"; do [[ ! -d $modules ]] || break; done

root=$keep/root
rm -rf --one-file-system "$root"
mkdir -p "$root"/{bin,dev,etc,proc,root,run,srv,sys,tests,tmp,usr/bin,usr/sbin,var/lib,var/tmp}
chmod 1777 "$root/tmp" "$root/var/tmp"
ln -s busybox "$root/bin/sh"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in $(busybox --list); do [[ $applet == busybox ]] || ln -sf busybox "$root/bin/$applet"; done
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
printf '127.0.0.1 localhost vm\n::1 localhost\n' >"$root/etc/hosts"
printf 'nameserver 192.0.2.53\n' >"$root/etc/resolv.conf"
printf 'ID=debian\nPRETTY_NAME="virtual machine of the tests"\n' >"$root/etc/os-release"

# add_program copies a program (a path) and the libraries of this machine that it is linked to.
add_program() {
  local path=$1 library
  cp -L "$path" "$root/usr/sbin/${path##*/}"
  ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
}
add_program "$(command -v mkfs.ext4)"
if ! compgen -G "$cache/apparmor_*.deb" >/dev/null; then (cd "$cache" && stable apt-get download apparmor >&2); fi
dpkg-deb -x "$(compgen -G "$cache/apparmor_*.deb" | tail -1)" "$cache/apparmor"
add_program "$cache/apparmor/sbin/apparmor_parser"
mkdir -p "$root"/{sbin,usr/share}
ln -s ../usr/sbin/apparmor_parser "$root/sbin/apparmor_parser"
cp -r "$cache/apparmor/etc/apparmor" "$root/etc/"
cp -r "$cache/apparmor/usr/share/apparmor-features" "$root/usr/share/"

export CGO_ENABLED=0
flags=(-trimpath -ldflags '-s -w')
grep -E "^[^#]*${ONLY:-}" packages.txt | sed 's/#.*//' | awk -v tests="${TESTS:+run=$TESTS}" 'NF { print $0, tests }' >"$root/tests/packages.txt"
while read -r package _; do
  binary=$root/tests/${package//\//-}.test
  (cd ../.. && go test -c -vet=off "${flags[@]}" -o "$binary" "./$package")
  mkdir -p "$root/src/$package"
  [[ ! -d ../../$package/testdata ]] || cp -r "../../$package/testdata" "$root/src/$package/"
done < <(sort -u -k 1,1 "$root/tests/packages.txt")
# Tests that build programs find them built: this "go" knows `go build -o FILE FOLDER`, for these folders.
programs=(cmd/setpoint test/escape/attacker)
if [[ -d $root/src/test/escape ]]; then
  for folder in "${programs[@]}"; do
    mkdir -p "$root/src/$folder"
    (cd ../.. && go build "${flags[@]}" -o "$root/src/$folder/built" "./$folder")
  done
fi
printf '#!/bin/sh\n[ "$1 $2" = "build -o" ] && exec cp "$4/built" "$3"\nexit 2\n' >"$root/usr/bin/go"
chmod +x "$root/usr/bin/go"
go build "${flags[@]}" -o "$keep/init" ./init
go run ./pack -modules "$modules" -init "$keep/init" -out "$keep/initramfs"
rm -f "$keep/disk" "$keep/swap"
truncate -s "$disk_size" "$keep/disk"
mkfs.ext4 -q -O quota,project -E lazy_itable_init=1,nodiscard -d "$root" "$keep/disk"
(umask 077 && head -c 128M /dev/zero >"$keep/swap")
mkswap "$keep/swap" >/dev/null

arguments=(-m "$memory" -smp "$processors" -nodefaults -display none -no-reboot -cpu max
  -drive "file=$keep/disk,format=raw,if=virtio,cache=unsafe" -drive "file=$keep/swap,format=raw,if=virtio,cache=unsafe"
  -kernel "$vmlinuz" -initrd "$keep/initramfs" -serial "file:$keep/console" -serial "file:$keep/output"
  -append "console=ttyS0 panic=-1 quiet loglevel=4 hugepages=$huge_pages vm.cgroup=$cgroup")

# works says whether the first process comes up with an accelerator: /dev/kvm of a virtual machine may be there and do nothing.
works() {
  local seconds=20
  : >"$keep/console"
  timeout "$seconds" qemu-system-x86_64 -accel "$1" -m 512M -nodefaults -display none -no-reboot -kernel "$vmlinuz" -initrd "$keep/initramfs" \
    -serial "file:$keep/console" -append 'console=ttyS0 panic=-1' >/dev/null 2>&1 || return 1
  grep -q 'vm: FAILED: boot' "$keep/console" # it has no disk
}
accel=${ACCEL:-}
if [[ -z $accel ]]; then
  accel=tcg
  if [[ -w /dev/kvm ]]; then
    if works kvm; then accel=kvm; fi
  fi
fi
[[ $accel != tcg ]] || accel=tcg,thread=multi

echo "vm: Linux $version, cgroup $cgroup, $accel; output in $keep"
started=$SECONDS
rm -f "$keep/console" "$keep/output"
timeout "$time_limit_seconds" qemu-system-x86_64 -accel "$accel" "${arguments[@]}" &
qemu=$!
trap 'kill "$qemu" 2>/dev/null || true' EXIT
tail -F --pid="$qemu" -n +1 "$keep/console" 2>/dev/null | sed -u 's|\r$||' | grep --line-buffered -E 'vm: |panic|BUG:|Oops' || true
wait "$qemu" && ended=0 || ended=$?
trap - EXIT
rm -rf --one-file-system "$root" "$keep/disk" "$keep/swap"
# The last word of the first process; without it the machine ended some other way.
if ! tail -5 "$keep/console" | tr -d '\r' | grep -qx 'vm: PASSED' || ((ended != 0)); then
  ((ended != 124)) || echo "vm: not done after $time_limit_seconds s" >&2
  echo "vm: FAILED after $((SECONDS - started)) s; see $keep/output and $keep/console" >&2
  exit 1
fi
echo "vm: passed in $((SECONDS - started)) s"
[[ -n ${KEEP:-} ]] || rm -rf --one-file-system "$keep"
