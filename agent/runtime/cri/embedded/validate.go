package embedded

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/net/network"
)

// What the runtime cannot do it refuses, for callers that do not ask before: a kubelet, or crictl.

func validateSandbox(config *runtimeapi.PodSandboxConfig, handler string) error {
	switch {
	case config.GetMetadata().GetName() == "":
		return status.Error(codes.InvalidArgument, "sandbox config has no metadata")
	case handler != "":
		return status.Errorf(codes.InvalidArgument, "no runtime for handler %q is configured", handler)
	}
	if _, err := hostPorts(config); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if err := validateUsers(namespaces(config)); err != nil {
		return err
	}
	_, err := sysctlFiles(config)
	return err
}

// hostPorts are those that lead to a pod with a network of its own; in the host's network its ports are the host's.
func hostPorts(config *runtimeapi.PodSandboxConfig) (ports []network.HostPort, err error) {
	if hostNetwork(config) {
		return nil, nil
	}
	for _, m := range config.GetPortMappings() {
		if m.GetHostPort() <= 0 {
			continue
		}
		port := network.HostPort{Protocol: protocols[m.GetProtocol()], Port: uint16(m.GetHostPort()), PodPort: uint16(m.GetContainerPort())}
		if text := m.GetHostIp(); text != "" {
			if port.Address, err = netip.ParseAddr(text); err != nil || port.Address.Zone() != "" {
				return nil, fmt.Errorf("host port %d: %q is no IP address", m.GetHostPort(), text)
			}
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// protocols have IANA's numbers.
var protocols = map[runtimeapi.Protocol]uint8{
	runtimeapi.Protocol_TCP: unix.IPPROTO_TCP, runtimeapi.Protocol_UDP: unix.IPPROTO_UDP, runtimeapi.Protocol_SCTP: unix.IPPROTO_SCTP,
}

func validateContainer(config *runtimeapi.ContainerConfig) error {
	security := config.GetLinux().GetSecurityContext()
	switch {
	case config.GetMetadata().GetName() == "" || config.GetImage().GetImage() == "":
		return status.Error(codes.InvalidArgument, "container config needs metadata and image")
	case security.GetRunAsGroup() != nil && security.GetRunAsUser() == nil && security.GetRunAsUsername() == "":
		return status.Error(codes.InvalidArgument, "a group needs a user")
	}
	for _, mount := range config.GetMounts() {
		if err := validateMount(mount); err != nil {
			return err
		}
	}
	return nil
}

func validateMount(mount *runtimeapi.Mount) error {
	switch {
	case mount.GetImage().GetImage() != "" && mount.GetHostPath() != "":
		return status.Errorf(codes.InvalidArgument, "mount %s: either an image or a path of the host", mount.GetContainerPath())
	case mount.GetImageSubPath() != "" && !filepath.IsLocal(mount.GetImageSubPath()):
		return status.Errorf(codes.InvalidArgument, "mount %s: %q leads out of the image", mount.GetContainerPath(), mount.GetImageSubPath())
	case mount.GetRecursiveReadOnly() && !mount.GetReadonly():
		return status.Errorf(codes.InvalidArgument, "mount %s: recursively read-only, but not read-only", mount.GetContainerPath())
	case mount.GetRecursiveReadOnly() && mount.GetPropagation() != runtimeapi.MountPropagation_PROPAGATION_PRIVATE:
		return status.Errorf(codes.InvalidArgument, "mount %s: recursively read-only needs private propagation", mount.GetContainerPath())
	}
	return nil
}
