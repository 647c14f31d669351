package discovery

import (
	"runtime"
	"runtime/debug"

	apiversion "k8s.io/apimachinery/pkg/version"
)

// The Kubernetes version whose API is served. Clients enable features by it.
const (
	kubernetesMajor = "1"
	kubernetesMinor = "37"
	kubernetesPatch = "2"
	// compatibleMinor is the oldest minor version whose servers could serve beside this one.
	compatibleMinor = "36"
)

// KubernetesVersion is the version whose API is served.
const KubernetesVersion = "v" + kubernetesMajor + "." + kubernetesMinor + "." + kubernetesPatch

func gitVersion(version string) string {
	served := KubernetesVersion + "+setpoint"
	if version == "" {
		return served
	}
	return served + "." + version
}

// VersionInfo is the answer to /version; commit and date are those that the Go toolchain
// has stamped into the binary, if any.
func VersionInfo(version string) apiversion.Info {
	info := apiversion.Info{
		Major: kubernetesMajor, Minor: kubernetesMinor, EmulationMajor: kubernetesMajor, EmulationMinor: kubernetesMinor,
		MinCompatibilityMajor: kubernetesMajor, MinCompatibilityMinor: compatibleMinor, GitVersion: gitVersion(version),
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.GitCommit = setting.Value
		case "vcs.time":
			info.BuildDate = setting.Value
		case "vcs.modified":
			info.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[setting.Value]
		}
	}
	return info
}
