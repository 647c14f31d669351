package podconfig

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/util/sysctl"
)

// safeSysctls change nothing but the pod they are set for; upstream's list.
var safeSysctls = []string{
	"kernel.shm_rmid_forced",
	"net.ipv4.ip_local_port_range",
	"net.ipv4.ip_local_reserved_ports",
	"net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ping_group_range",
	"net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_keepalive_intvl",
	"net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_notsent_lowat",
	"net.ipv4.tcp_rmem",
	"net.ipv4.tcp_slow_start_after_idle",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.tcp_wmem",
}

// CheckSysctls refuses a pod that sets a kernel parameter which is not safe, or one of a namespace that it shares with
// the node. Of those that are not safe the node may allow some, by name or by the beginning of names and "*".
func CheckSysctls(pod *corev1.Pod, allowed []string) error {
	for _, s := range podSecurity(pod).Sysctls {
		name := sysctl.NormalizeName(s.Name)
		namespace, _, _ := sysctl.GetNamespace(name)
		shared := namespace == sysctl.IPCNamespace && pod.Spec.HostIPC || namespace == sysctl.NetNamespace && pod.Spec.HostNetwork
		switch {
		case !slices.Contains(safeSysctls, name) && !slices.ContainsFunc(allowed, func(p string) bool { return covers(p, name) }):
			return fmt.Errorf("forbidden sysctl: %q not allowlisted", name)
		case shared:
			return fmt.Errorf("forbidden sysctl: %q not allowed with host %s enabled", name, namespace)
		}
	}
	return nil
}

func covers(pattern, name string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, start)
	}
	return pattern == name
}
