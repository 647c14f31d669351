package seccomp

import (
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// For compiles the profile that a container asks for; capabilities are those it may have. Without a wish there is none, as CRI
// says; privileged containers never have one.
func For(security *runtimeapi.LinuxContainerSecurityContext, capabilities []string) ([]byte, error) {
	profile := security.GetSeccomp()
	if profile == nil || security.GetPrivileged() {
		return nil, nil
	}
	switch profile.ProfileType {
	case runtimeapi.SecurityProfile_RuntimeDefault:
		return Default(capabilities)
	case runtimeapi.SecurityProfile_Localhost:
		if !filepath.IsAbs(profile.LocalhostRef) { // relative to what? the caller knows, not this process
			return nil, status.Errorf(codes.InvalidArgument, "seccomp profile %q: want an absolute path", profile.LocalhostRef)
		}
		data, err := os.ReadFile(profile.LocalhostRef)
		if err != nil {
			return nil, err
		}
		return Compile(data, capabilities)
	default:
		return nil, nil
	}
}
