package embedded

import (
	"math"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/trial"
)

// usersOf are those of the pod's own user namespace; nil if it has the host's. The options have been validated.
func usersOf(config *runtimeapi.PodSandboxConfig) *boot.Users {
	options := namespaces(config).GetUsernsOptions()
	if options == nil || options.GetMode() != runtimeapi.NamespaceMode_POD {
		return nil
	}
	ids := options.GetUids()[0]
	return &boot.Users{First: ids.GetHostId(), Length: ids.GetLength()}
}

// users are the pod's own once it runs; nil if it has the host's.
func (s *sandbox) users() *boot.Users {
	users := usersOf(s.config)
	if users != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		users.Holder = s.record.HolderPID
	}
	return users
}

// usersProblem says why this machine cannot run pods with user namespaces; nil if it can. It is tried once.
func (r *Runtime) usersProblem() error {
	r.usersOnce.Do(func() {
		if r.usersErr = trial.Users(r.executable.Path, r.config.DataDir); r.usersErr != nil {
			r.config.Logger.Warn("pods cannot have user namespaces", "err", r.usersErr)
		}
	})
	return r.usersErr
}

func (r *Runtime) hasUsers() bool { return r.usersProblem() == nil }

// validateUsers accepts one range for users and groups alike, from 0 on, as a kubelet asks for.
func validateUsers(options *runtimeapi.NamespaceOption) error {
	users := options.GetUsernsOptions()
	switch {
	case users == nil:
		return nil
	case users.GetMode() == runtimeapi.NamespaceMode_NODE:
		if len(users.GetUids())+len(users.GetGids()) > 0 {
			return status.Error(codes.InvalidArgument, "a mapping of users in the user namespace of the host")
		}
		return nil
	case users.GetMode() != runtimeapi.NamespaceMode_POD:
		return status.Errorf(codes.InvalidArgument, "mode %v of user namespaces", users.GetMode())
	case len(users.GetUids()) != 1 || len(users.GetGids()) != 1 || !proto.Equal(users.Uids[0], users.Gids[0]):
		return status.Error(codes.InvalidArgument, "a user namespace needs one mapping, the same for users and groups")
	case sharesWithHost(options):
		return status.Error(codes.InvalidArgument, "a user namespace beside a network, IPC or PID namespace of the host")
	}
	ids := users.Uids[0]
	end := uint64(ids.GetHostId()) + uint64(ids.GetLength())
	if ids.GetContainerId() != 0 || ids.GetHostId() == 0 || ids.GetLength() == 0 || end > math.MaxUint32 {
		return status.Errorf(codes.InvalidArgument, "a user namespace of users %v", ids)
	}
	return nil
}

func sharesWithHost(options *runtimeapi.NamespaceOption) bool {
	const host = runtimeapi.NamespaceMode_NODE
	return options.GetNetwork() == host || options.GetIpc() == host || options.GetPid() == host
}
