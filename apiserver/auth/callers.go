package auth

import (
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// IsServer reports whether the caller is a server of the control plane or an administrator.
func IsServer(u user.Info) bool {
	return slices.Contains(u.GetGroups(), trust.GroupServers) || IsAdmin(u)
}

// IsAdmin reports whether the caller is an administrator.
func IsAdmin(u user.Info) bool { return slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) }

// IsNode reports whether the caller is a node.
func IsNode(u user.Info) bool { return slices.Contains(u.GetGroups(), trust.GroupNodes) }
