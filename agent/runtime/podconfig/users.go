package podconfig

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/userns"
)

// userNamespace is nil for a pod with the host's users, which every runtime understands.
func userNamespace(users *userns.Range) *runtimeapi.UserNamespace {
	if users == nil {
		return nil
	}
	ids := mapping(users)
	return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: ids, Gids: ids}
}

func mapping(users *userns.Range) []*runtimeapi.IDMapping {
	return []*runtimeapi.IDMapping{{HostId: users.First, ContainerId: 0, Length: users.Length}}
}

// MapUsers has the runtime show what belongs to a user of the host as that user's of the pod.
func MapUsers(mounts []*runtimeapi.Mount, users *userns.Range) {
	if users == nil {
		return
	}
	for _, mount := range mounts {
		mount.UidMappings, mount.GidMappings = mapping(users), mapping(users)
	}
}
