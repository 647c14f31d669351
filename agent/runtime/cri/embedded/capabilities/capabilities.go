package capabilities

import (
	"fmt"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// names in the order of their numbers in the kernel's interface.
func names() []string {
	return []string{"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
		"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE",
		"SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME",
		"SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG",
		"WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE"}
}

const (
	all = 1<<41 - 1
	// byDefault is the set that container runtimes have agreed on: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL,
	// SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD, AUDIT_WRITE, SETFCAP.
	byDefault = 0xa80425fb
)

// Of are a container's, as a mask (bit n is capability n): adds and drops are applied, ALL first, so that single names refine it.
func Of(security *runtimeapi.LinuxContainerSecurityContext) (uint64, error) {
	if security.GetPrivileged() {
		return all, nil
	}
	mask := uint64(byDefault)
	changes := security.GetCapabilities()
	if slices.ContainsFunc(changes.GetAddCapabilities(), isAll) {
		mask = all
	}
	if slices.ContainsFunc(changes.GetDropCapabilities(), isAll) {
		mask = 0
	}
	for _, name := range changes.GetAddCapabilities() {
		one, err := bit(name)
		if err != nil {
			return 0, err
		}
		mask |= one
	}
	for _, name := range changes.GetDropCapabilities() {
		one, err := bit(name)
		if err != nil {
			return 0, err
		}
		mask &^= one
	}
	return mask, nil
}

func isAll(name string) bool {
	return strings.EqualFold(name, "ALL") || strings.EqualFold(name, "CAP_ALL")
}

func bit(name string) (uint64, error) {
	if isAll(name) {
		return 0, nil
	}
	number := slices.Index(names(), strings.TrimPrefix(strings.ToUpper(name), "CAP_"))
	if number < 0 {
		return 0, fmt.Errorf("unknown capability %q", name)
	}
	return 1 << number, nil
}

// Names are those of a mask, with the prefix CAP_.
func Names(mask uint64) []string {
	var list []string
	for number, name := range names() {
		if mask&(1<<number) != 0 {
			list = append(list, "CAP_"+name)
		}
	}
	return list
}
