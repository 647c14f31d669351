package embedded

import (
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/cri/embedded/seccomp"
)

// seccompFor compiles the profile that the pod asks for. Without a wish there is none, as CRI says; privileged
// containers never have one.
func seccompFor(security *runtimeapi.LinuxContainerSecurityContext, bounding uint64) ([]byte, error) {
	profile := security.GetSeccomp()
	if profile == nil || security.GetPrivileged() {
		return nil, nil
	}
	switch profile.ProfileType {
	case runtimeapi.SecurityProfile_RuntimeDefault:
		return seccomp.Default(capabilityList(bounding))
	case runtimeapi.SecurityProfile_Localhost:
		if !filepath.IsAbs(profile.LocalhostRef) { // relative to what? the caller knows, not this process
			return nil, status.Errorf(codes.InvalidArgument, "seccomp profile %q: want an absolute path", profile.LocalhostRef)
		}
		data, err := os.ReadFile(profile.LocalhostRef)
		if err != nil {
			return nil, err
		}
		return seccomp.Compile(data, capabilityList(bounding))
	default:
		return nil, nil
	}
}
