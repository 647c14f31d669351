package host

import (
	"github.com/setpoint-io/setpoint/agent/kubeletconfig"
	"github.com/setpoint-io/setpoint/agent/pods/eviction"
	"github.com/setpoint-io/setpoint/agent/runtime/collect"
	"github.com/setpoint-io/setpoint/agent/runtime/images/credentials"
	"github.com/setpoint-io/setpoint/agent/runtime/logs"
	"github.com/setpoint-io/setpoint/agent/runtime/userns"
)

// Settings are what a KubeletConfiguration says.
type Settings = kubeletconfig.Settings

// UserNamespacesDefault gives user namespaces to the pods that ask for one, and to those in which nothing could need the host's users.
const UserNamespacesDefault = userns.Auto

// ParseUserNamespaces reads the flag --user-namespaces.
func ParseUserNamespaces(text string) (userns.Mode, error) {
	mode := userns.Mode(text)
	return mode, mode.Validate()
}

// DefaultImages is upstream's policy of image garbage collection.
var DefaultImages = collect.DefaultPolicy

// ReadSettings reads the file of --kubelet-config; without one they are upstream's defaults.
func ReadSettings(path string) (Settings, error) {
	s, err := kubeletconfig.Read(path)
	if s.MaxPods == 0 {
		s.MaxPods = DefaultMaxPods
	}
	return s, err
}

// MachinePodLogs is where collectors of logs look for those of pods.
const MachinePodLogs = logs.MachinePods

// Flags of credential provider plugins.
const (
	CredentialConfigFlag = credentials.ConfigFlag
	CredentialDirFlag    = credentials.DirFlag
)

// ReadCredentials reads what the flags of credential provider plugins name.
func ReadCredentials(config, dir string) (*credentials.Plugins, error) {
	return credentials.Read(config, dir)
}

// SharedMachineSettings are for machines whose owners have other work for them, and whose disks are often nearly full: no images
// are removed before the disk is short of room, and only 5% of it have to be free.
func SharedMachineSettings() Settings {
	s := kubeletconfig.Default()
	s.Images = collect.Policy{}
	for i := range s.Eviction.Thresholds {
		if t := &s.Eviction.Thresholds[i]; t.Signal == eviction.NodeFsAvailable || t.Signal == eviction.ImageFsAvailable {
			t.Value = eviction.Amount{Fraction: .05}
		}
	}
	return s
}
