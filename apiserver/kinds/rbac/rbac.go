package rbac

import (
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Kinds returns the kinds of the group in the order of discovery.
func Kinds() []*resource.Any {
	return []*resource.Any{
		resource.Erase(clusterRoleBindings()),
		resource.Erase(clusterRoles()),
		resource.Erase(roleBindings()),
		resource.Erase(roles()),
	}
}

// name accepts every name that can be a part of a path: the names of roles have
// colons in them.
func name(name string, _ bool) []string { return content.IsPathSegmentName(name) }
