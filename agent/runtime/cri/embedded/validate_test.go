package embedded

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestWhatTheRuntimeCannotDoIsRefused(t *testing.T) {
	sandbox := func(change func(*runtimeapi.PodSandboxConfig)) error {
		config := podConfig(t, "p")
		config.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{}}}
		change(config)
		return validateSandbox(config, "")
	}
	container := func(change func(*runtimeapi.LinuxContainerSecurityContext)) error {
		config := containerConfig()
		config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{}
		change(config.Linux.SecurityContext)
		return validateContainer(config)
	}
	mount := func(m *runtimeapi.Mount) error {
		config := containerConfig()
		config.Mounts = []*runtimeapi.Mount{m}
		return validateContainer(config)
	}
	id := &runtimeapi.Int64Value{Value: 1}
	ports := []*runtimeapi.PortMapping{
		{HostPort: 80, ContainerPort: 80}, {HostPort: 81, ContainerPort: 81, HostIp: "::1"}, {HostPort: 82, ContainerPort: 82, HostIp: "fe80::1%eth0"},
	}
	for name, tc := range map[string]struct {
		err  error
		want codes.Code
	}{
		"nothing": {sandbox(func(*runtimeapi.PodSandboxConfig) {}), codes.OK},
		"a user namespace without users": {sandbox(func(c *runtimeapi.PodSandboxConfig) {
			c.Linux.SecurityContext.NamespaceOptions.UsernsOptions = &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD}
		}), codes.InvalidArgument},
		"host ports":       {sandbox(func(c *runtimeapi.PodSandboxConfig) { c.PortMappings = ports[:1] }), codes.OK},
		"host ports, IPv6": {sandbox(func(c *runtimeapi.PodSandboxConfig) { c.PortMappings = ports[:2] }), codes.OK},
		"host ports, zone": {sandbox(func(c *runtimeapi.PodSandboxConfig) { c.PortMappings = ports }), codes.InvalidArgument},
		"host ports of the host": {sandbox(func(c *runtimeapi.PodSandboxConfig) {
			c.PortMappings = ports
			c.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_NODE
		}), codes.OK},
		"a group alone":           {container(func(s *runtimeapi.LinuxContainerSecurityContext) { s.RunAsGroup = id }), codes.InvalidArgument},
		"a group of a user":       {container(func(s *runtimeapi.LinuxContainerSecurityContext) { s.RunAsGroup, s.RunAsUser = id, id }), codes.OK},
		"recursive, but writable": {mount(&runtimeapi.Mount{RecursiveReadOnly: true}), codes.InvalidArgument},
		"recursive, but shared": {mount(&runtimeapi.Mount{RecursiveReadOnly: true, Readonly: true,
			Propagation: runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER}), codes.InvalidArgument},
		"recursive":               {mount(&runtimeapi.Mount{RecursiveReadOnly: true, Readonly: true}), codes.OK},
		"image volume":            {mount(&runtimeapi.Mount{Image: &runtimeapi.ImageSpec{Image: "x"}, ImageSubPath: "a/b"}), codes.OK},
		"image volume of a path":  {mount(&runtimeapi.Mount{Image: &runtimeapi.ImageSpec{Image: "x"}, HostPath: "/"}), codes.InvalidArgument},
		"image volume, out of it": {mount(&runtimeapi.Mount{Image: &runtimeapi.ImageSpec{Image: "x"}, ImageSubPath: "../b"}), codes.InvalidArgument},
	} {
		if got := status.Code(tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", name, tc.err, tc.want)
		}
	}
}
