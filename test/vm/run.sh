#!/usr/bin/env bash
# Runs the tests that packages.txt names on Debian's kernel, in qemu (README.md). Exits 1 if one fails, or if none ran.
#
#   KERNEL=stable    the kernel of the release; backports: the newer one of its backports; or the path of a package linux-image-*.deb
#   RELEASE=bookworm of Debian; bookworm is 12
#   ARCH=amd64       arm64
#   CGROUP=v2        v1, hybrid
#   LSM=apparmor     selinux
#   ONLY=regexp      only these packages
#   TESTS=regexp     only these tests of them
#   TIME_LIMIT=7200  seconds for everything that runs in the machine
#   ACCEL=kvm|tcg    default: kvm where it works
#   KEEP=DIR         where disk and output go; default: a new folder below /tmp, removed if all is well
set -euo pipefail
cd "$(dirname "$0")"

kernel=${KERNEL:-stable}
arch=${ARCH:-amd64}
release=${RELEASE:-bookworm}
cgroup=${CGROUP:-v2}
lsm=${LSM:-apparmor}
time_limit_seconds=${TIME_LIMIT:-7200}
cache=${VM_CACHE:-$HOME/.cache/setpoint-vm}
disk_size=6G
memory=3G
processors=2
# 2 MiB each: tests take what they need of them, the rest is no one else's.
huge_pages=64

die() { echo "vm: $*" >&2; exit 2; }
need() { command -v "$1" >/dev/null || die "no $1: apt-get install $2 (on Debian, as root)"; }
export PATH=$PATH:/usr/sbin:/sbin
case $arch in
amd64) board=q35 emulator=qemu-system-x86_64 package=qemu-system-x86 console=ttyS0 ;;
arm64) board=virt emulator=qemu-system-aarch64 package=qemu-system-arm console=ttyAMA0 ;;
*) die "ARCH=$arch: amd64 or arm64" ;;
esac
[[ $lsm == apparmor || $lsm == selinux ]] || die "LSM=$lsm: apparmor or selinux"
need "$emulator" "$package"
need dpkg-deb dpkg
need apt-get apt
need mkfs.ext4 e2fsprogs
need mkswap util-linux
need xz xz-utils

keep=${KEEP:-$(mktemp -d /tmp/vm-XXXXXX)}
mkdir -p "$keep" "$cache"
keep=$(cd "$keep" && pwd)

# debian runs apt with a list of sources of its own, for another architecture too: the machine's stays as it is.
debian() {
  local suite=$1 command=$2 state=$cache/apt/$arch-$1
  shift 2
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  : >"$state/status"
  echo "deb [arch=$arch signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" >"$state/sources.list"
  "$command" -q -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$state/lists" \
    -o "Dir::State::status=$state/status" -o "Dir::Cache=$state" -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" \
    -o APT::Sandbox::User=root "$@"
}
# fetch leaves packages of a suite in the cache, and prints their paths.
fetch() {
  local suite=$1 name
  shift
  for name in "$@"; do
    compgen -G "$cache/${name}_*_$arch.deb" >/dev/null || (cd "$cache" && debian "$suite" apt-get download "$name" >&2)
    compgen -G "$cache/${name}_*_$arch.deb" | tail -1
  done
}
# newest prints the package of the newest kernel of a suite, on which linux-image-amd64 only depends.
newest() { debian "$1" apt-cache show "linux-image-$arch" | awk '/^Depends: linux-image-/ { print $2; exit }'; }

# The release and its backports change: once a day is enough.
for suite in "$release" "$release-backports"; do
  if [[ -z $(find "$cache/apt/$arch-$suite/updated" -mtime -1 2>/dev/null) ]]; then
    debian "$suite" apt-get update >&2
    touch "$cache/apt/$arch-$suite/updated"
  fi
done
case $kernel in
stable) kernel=$(fetch "$release" "$(newest "$release")") ;;
backports) kernel=$(fetch "$release-backports" "$(newest "$release-backports")") ;;
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

# The programs that tests call, with their libraries, are Debian's too.
root=$keep/root
rm -rf --one-file-system "$root"
mkdir -p "$root"/{dev,etc,proc,root,run,srv,sys,tests,tmp,usr/bin,usr/sbin,usr/lib,usr/lib64,var/lib,var/tmp}
chmod 1777 "$root/tmp" "$root/var/tmp"
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done
programs=(busybox-static e2fsprogs apparmor checkpolicy)
mapfile -t libraries < <(debian "$release" apt-cache depends --recurse --important "${programs[@]}" |
  grep -E '^lib(c6|gcc|stdc|ext2fs|e2p|com-err|blkid|uuid|ss)[^:]*$' | sort -u)
while read -r package; do
  dpkg-deb --fsys-tarfile "$package" |
    tar -x -C "$root" --keep-directory-symlink --exclude ./usr/share/doc --exclude ./usr/share/man --exclude ./usr/share/locale
done < <(fetch "$release" "${programs[@]}" "${libraries[@]}")
applets=(sh ls cat cp mv rm mkdir mount umount sleep ps kill ip id env echo touch head tail grep sed awk dd ln chmod chown test true false)
for applet in "${applets[@]}"; do [[ -e $root/usr/bin/$applet ]] || ln -s busybox "$root/usr/bin/$applet"; done
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
# The policy of SELinux, which init compiles: the categories are what is long about it.
mkdir -p "$root/usr/share/containers/selinux"
cp selinux/contexts "$root/usr/share/containers/selinux/"
seq -f 'category c%g;' 0 1023 | sed '/^# run.sh puts the categories/r /dev/stdin' selinux/policy.conf >"$root/etc/policy.conf"
printf '127.0.0.1 localhost vm\n::1 localhost\n' >"$root/etc/hosts"
printf 'nameserver 192.0.2.53\n' >"$root/etc/resolv.conf"
printf 'ID=debian\nPRETTY_NAME="virtual machine of the tests"\n' >"$root/etc/os-release"

export CGO_ENABLED=0 GOARCH=$arch
flags=(-trimpath -ldflags '-s -w')
grep -E "^[^#]*${ONLY:-}" packages.txt | sed 's/#.*//' | awk -v tests="${TESTS:+run=$TESTS}" 'NF { print $0, tests }' >"$root/tests/packages.txt"
while read -r package _; do
  binary=$root/tests/${package//\//-}.test
  (cd ../.. && go test -c -vet=off "${flags[@]}" -o "$binary" "./$package")
  mkdir -p "$root/src/$package"
  [[ ! -d ../../$package/testdata ]] || cp -r "../../$package/testdata" "$root/src/$package/"
done < <(sort -u -k 1,1 "$root/tests/packages.txt")
# Tests that build programs find them built: this "go" knows `go build -o FILE FOLDER`, for these folders.
commands=(cmd/setpoint test/escape/attacker test/nodefaults/workload)
if [[ -d $root/src/test ]]; then
  for folder in "${commands[@]}"; do
    mkdir -p "$root/src/$folder"
    (cd ../.. && go build "${flags[@]}" -o "$root/src/$folder/built" "./$folder")
  done
fi
printf '#!/bin/sh\n[ "$1 $2" = "build -o" ] && exec cp "$4/built" "$3"\nexit 2\n' >"$root/usr/bin/go"
chmod +x "$root/usr/bin/go"
go build "${flags[@]}" -o "$keep/init" ./init
GOARCH='' go run ./pack -modules "$modules" -init "$keep/init" -out "$keep/initramfs"
rm -f "$keep/disk" "$keep/swap"
truncate -s "$disk_size" "$keep/disk"
mkfs.ext4 -q -O quota,project -E lazy_itable_init=1,nodiscard -d "$root" "$keep/disk"
(umask 077 && head -c 128M /dev/zero >"$keep/swap")
mkswap "$keep/swap" >/dev/null

# The first port is what the machine says of itself; the second one, all that the tests say.
machine=(-machine "$board" -cpu max -nodefaults -display none -no-reboot -kernel "$vmlinuz" -initrd "$keep/initramfs"
  -serial "file:$keep/console")
whole=(-m "$memory" -smp "$processors"
  -drive "file=$keep/disk,format=raw,if=virtio,cache=unsafe" -drive "file=$keep/swap,format=raw,if=virtio,cache=unsafe"
  -device virtio-serial -chardev "file,id=output,path=$keep/output" -device virtconsole,chardev=output
  -append "console=$console panic=-1 quiet loglevel=4 hugepagesz=2M hugepages=$huge_pages vm.cgroup=$cgroup security=$lsm $lsm=1")

# works says whether the first process comes up with an accelerator: /dev/kvm of a virtual machine may be there and do nothing.
works() {
  local seconds=20
  : >"$keep/console"
  # In a shell of its own, which says nothing if the emulator aborts.
  (timeout "$seconds" "$emulator" -accel "$1" -m 512M "${machine[@]}" -append "console=$console panic=-1") >/dev/null 2>&1 || return 1
  grep -q 'vm: FAILED: boot' "$keep/console" # it has no disk
}
accel=${ACCEL:-}
if [[ -z $accel ]]; then
  accel=tcg
  if [[ -w /dev/kvm && $(dpkg --print-architecture) == "$arch" ]] && works kvm 2>/dev/null; then accel=kvm; fi
fi
[[ $accel != tcg ]] || accel=tcg,thread=multi

echo "vm: Linux $version, $arch, cgroup $cgroup, $lsm, $accel; output in $keep"
started=$SECONDS
rm -f "$keep/console" "$keep/output"
timeout "$time_limit_seconds" "$emulator" -accel "$accel" "${machine[@]}" "${whole[@]}" &
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
