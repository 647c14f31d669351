package embedded

import (
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/component-helpers/node/util/sysctl"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sysctlFiles are the pod's kernel parameters, by their files below /proc/sys. A parameter of a namespace that the pod does
// not have for itself is refused: it would change the host.
func sysctlFiles(config *runtimeapi.PodSandboxConfig) (map[string]string, error) {
	files := map[string]string{}
	for name, value := range config.GetLinux().GetSysctls() {
		if !ownSysctl(config, name) {
			return nil, status.Errorf(codes.InvalidArgument, "sysctl %q is not in a namespace of the pod's own", name)
		}
		file := sysctlFile(name)
		if !filepath.IsLocal(file) || filepath.Clean(file) != file {
			return nil, status.Errorf(codes.InvalidArgument, "sysctl %q is not a name", name)
		}
		files[file] = value
	}
	return files, nil
}

func ownSysctl(config *runtimeapi.PodSandboxConfig, name string) bool {
	namespace, _, _ := sysctl.GetNamespace(name)
	switch namespace {
	case sysctl.NetNamespace, sysctl.UTSNamespace: // these two come together
		return !hostNetwork(config)
	case sysctl.IPCNamespace:
		return namespaces(config).GetIpc() != runtimeapi.NamespaceMode_NODE
	default:
		return false
	}
}

// sysctlFile swaps dots and slashes: an interface called eth0.1 is eth0/1 in a dotted name.
func sysctlFile(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, sysctl.NormalizeName(name))
}
