package auth

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/internal/shares"
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

// controlPlane are the users that parts of a control plane have elsewhere: here a server has those loops in its own process.
var controlPlane = []string{user.APIServerUser, user.KubeControllerManager, user.KubeScheduler, user.KubeProxy}

// Tenant is with whom a user shares what is limited. The service accounts of a namespace are one tenant. Administrators, servers,
// nodes, and what runs in kube-system are privileged, each for himself.
func Tenant(u user.Info) shares.Holder {
	name := u.GetName()
	namespace, _, err := serviceaccount.SplitUsername(name)
	if err == nil && namespace != metav1.NamespaceSystem {
		return shares.Holder{Name: "the service accounts of namespace " + namespace}
	}
	_, node := NodeOf(u)
	return shares.Holder{
		Name:       "user " + name,
		Privileged: err == nil || node || IsServer(u) || slices.Contains(controlPlane, name),
	}
}
