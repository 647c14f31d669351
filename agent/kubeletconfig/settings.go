package kubeletconfig

import (
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/setpoint-io/setpoint/agent/pods/eviction"
	"github.com/setpoint-io/setpoint/agent/pods/shutdown"
	"github.com/setpoint-io/setpoint/agent/resources/pinning"
	"github.com/setpoint-io/setpoint/agent/runtime/collect"
	"github.com/setpoint-io/setpoint/agent/runtime/images"
	"github.com/setpoint-io/setpoint/agent/runtime/images/credentials"
	"github.com/setpoint-io/setpoint/agent/runtime/userns"
)

// Settings of one agent. Zero values are those without a file, unless a field says otherwise.
type Settings struct {
	// MaxPods is how many pods the node takes; 0 is upstream's number.
	MaxPods int64
	// Images says which images go when the disk fills up; the zero Policy removes none.
	Images collect.Policy
	// Eviction says when pods are evicted for the node's sake; the zero Policy evicts none.
	Eviction eviction.Policy
	LogSettings
	// Reserved is what pods cannot have of the machine: systemReserved and kubeReserved.
	Reserved corev1.ResourceList
	// Pinning says which containers have CPUs and memory of their own.
	Pinning pinning.Settings
	// PodPIDsMax is how many processes a pod may have; 0 leaves it to the runtime.
	PodPIDsMax int64
	// UnsafeSysctls may be set by pods beside the safe ones; patterns end in *.
	UnsafeSysctls []string
	// Taints the node registers with.
	Taints []corev1.Taint
	// Verification says which images that are on the node need credentials.
	Verification images.Verification
	// Credentials are the plugins that have some of the node; no KubeletConfiguration says them, but flags.
	Credentials *credentials.Plugins
	// PullsMax is how many images are pulled at a time; 0 is the agent's own number.
	PullsMax int
	// RestartPauseMax is the longest pause before a container that keeps ending is started again; 0 is upstream's.
	RestartPauseMax time.Duration
	// SeccompDefault gives containers the runtime's profile unless they ask for another. It is on unless the file says no; upstream's is off.
	SeccompDefault bool
	// QuotaPeriod is within which a container uses up its quota of CPU time; 0 is upstream's.
	QuotaPeriod time.Duration
	// UserNamespaces says which pods have one; empty: those that ask. UsersPerPod is how many users each has; 0 is upstream's number.
	UserNamespaces userns.Mode
	// Registries is a file or folder that says from where images are fetched; "": from their registries.
	Registries string
	// OpenHost leaves pods all ports of the machine; otherwise agent/net/hostfirewall closes those that nobody promised them.
	OpenHost    bool
	UsersPerPod uint32
	// StatusCheckEvery and StatusReportEvery are between looks at the machine and between writes of an unchanged Node; ImagesMax
	// bounds the images in its status, -1 does not.
	StatusCheckEvery, StatusReportEvery time.Duration
	ImagesMax                           int
	// ClusterDNS and ClusterDomain are for pods that ask the cluster's names.
	ClusterDNS    []string
	ClusterDomain string
	// ResolvConf is the node's file of servers and search paths, "" none; nil: the system's.
	ResolvConf *string
	// StaticPods is the folder of static pods, or one file; empty: there are none. StaticPodsEvery is between two looks at it.
	StaticPods      string
	StaticPodsEvery time.Duration
	// VolumeStatsEvery is between two measurements of the volumes of claims; 0 is upstream's, less than nothing measures none.
	VolumeStatsEvery time.Duration
	// Shutdown is how long pods have to end when the machine shuts down, by priority; nil: nobody waits for them.
	Shutdown []shutdown.Period
	// NoTokens refuses everybody but servers on the node's port; the others are how long the servers' answers about users and
	// their rights are kept, 0 as upstream.
	NoTokens                        bool
	TokenTTL, AllowedTTL, DeniedTTL time.Duration
	// Pages mounts what the process tells of itself, given what else is served; no KubeletConfiguration says it. Nil: nothing.
	Pages func(mux interface {
		Handle(path string, handler http.Handler)
	}, paths []string)
	// NoProfiles turns the profiles of the agent's process on the node's port off.
	NoProfiles bool
	// Port and RuntimeEndpoint are as the agent's flags.
	Port            int
	RuntimeEndpoint string

	file kubeletv1beta1.KubeletConfiguration // as it was read
}

// LogSettings are of the logs of containers.
type LogSettings struct {
	// LogSizeMaxBytes and LogFilesMax are of each container's log; LogLookEvery is the pause between two looks.
	LogSizeMaxBytes int64
	LogFilesMax     int
	LogLookEvery    time.Duration
	// PodLogsDir is where they are; "": where the agent keeps its data.
	PodLogsDir string
	// LogLinksDir is where collectors of logs find a link to each; "": upstream's place with a PodLogsDir, nowhere without. No
	// KubeletConfiguration says it.
	LogLinksDir string
}

// Default is upstream's, but for seccomp, and where the agent's own is not written down elsewhere.
func Default() Settings {
	return Settings{Images: collect.DefaultPolicy, Eviction: eviction.DefaultPolicy(), SeccompDefault: true}
}

// ReservedPIDs is how many process ids pods cannot have.
func (s Settings) ReservedPIDs() int64 {
	q := s.Reserved["pid"]
	return q.Value()
}

// Allocatable is what pods can have of capacity: not what is reserved, and not what eviction keeps free, as upstream.
func (s Settings) Allocatable(capacity corev1.ResourceList) corev1.ResourceList {
	out := capacity.DeepCopy()
	take := func(name corev1.ResourceName, q resource.Quantity) {
		left, ok := out[name]
		if !ok {
			return
		}
		left.Sub(q)
		if left.Sign() < 0 {
			left.Set(0)
		}
		out[name] = left
	}
	for name, q := range s.Reservation(capacity) {
		take(name, q)
	}
	return out
}

// Reservation is what pods cannot have: what is reserved, and what eviction keeps free.
func (s Settings) Reservation(capacity corev1.ResourceList) corev1.ResourceList {
	out := s.Reserved.DeepCopy()
	if out == nil {
		out = corev1.ResourceList{}
	}
	for name, signal := range map[corev1.ResourceName]eviction.Signal{
		corev1.ResourceMemory: eviction.MemoryAvailable, corev1.ResourceEphemeralStorage: eviction.NodeFsAvailable,
	} {
		total, sum := capacity[name], out[name]
		sum.Add(*resource.NewQuantity(s.Eviction.HardThreshold(signal, total.Value()), resource.BinarySI))
		out[name] = sum
	}
	return out
}

// settings says what c means. Its errors name the field.
func settings(c *kubeletv1beta1.KubeletConfiguration) (Settings, error) {
	s := Settings{
		file: *c.DeepCopy(), MaxPods: maxPods(c), UnsafeSysctls: c.AllowedUnsafeSysctls,
		Taints: c.RegisterWithTaints, SeccompDefault: c.SeccompDefault == nil || *c.SeccompDefault,
		NoProfiles:       c.EnableProfilingHandler != nil && !*c.EnableProfilingHandler,
		StatusCheckEvery: c.NodeStatusUpdateFrequency.Duration, StatusReportEvery: c.NodeStatusReportFrequency.Duration,
		ClusterDNS: c.ClusterDNS, ClusterDomain: c.ClusterDomain, ResolvConf: c.ResolverConfig,
		QuotaPeriod: duration(c.CPUCFSQuotaPeriod),
		Port:        int(c.Port), RuntimeEndpoint: c.ContainerRuntimeEndpoint,
		StaticPods: c.StaticPodPath, StaticPodsEvery: c.FileCheckFrequency.Duration,
		VolumeStatsEvery: c.VolumeStatsAggPeriod.Duration,
		Images:           imagePolicy(c), PodPIDsMax: max(0, value(c.PodPidsLimit)), ImagesMax: int(value(c.NodeStatusMaxImages)),
		NoTokens: c.Authentication.Webhook.Enabled != nil && !*c.Authentication.Webhook.Enabled,
		TokenTTL: c.Authentication.Webhook.CacheTTL.Duration, AllowedTTL: c.Authorization.Webhook.CacheAuthorizedTTL.Duration,
		DeniedTTL:       c.Authorization.Webhook.CacheUnauthorizedTTL.Duration,
		LogSettings:     LogSettings{LogFilesMax: int(value(c.ContainerLogMaxFiles)), LogLookEvery: duration(c.ContainerLogMonitorInterval)},
		RestartPauseMax: duration(c.CrashLoopBackOff.MaxContainerRestartPeriod),
	}
	if c.NodeStatusReportFrequency.Duration == 0 {
		s.StatusReportEvery = c.NodeStatusUpdateFrequency.Duration // as upstream
	}
	for _, part := range []func(*kubeletv1beta1.KubeletConfiguration, *Settings) error{
		checkNumbers, readImages, readEviction, readLogs, readReserved, readPinning, readPulls, readSysctls, readTaints, readShutdown, readUsers,
	} {
		if err := part(c, &s); err != nil {
			return Settings{}, err
		}
	}
	return s, nil
}

func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// maxPods is upstream's unless podsPerCore says less.
func maxPods(c *kubeletv1beta1.KubeletConfiguration) int64 {
	most := int64(c.MaxPods)
	if c.PodsPerCore > 0 {
		if most == 0 {
			most = maxPodsDefault
		}
		most = min(most, int64(c.PodsPerCore)*int64(runtime.NumCPU()))
	}
	return most
}

const (
	maxPodsDefault       = 110
	restartPauseMaxBound = 5 * time.Minute
	logSizeMinBytes      = 1
)

// checkNumbers refuses what is out of range.
func checkNumbers(c *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	for _, n := range []struct {
		path string
		bad  bool
		got  any
		want string
	}{
		{"maxPods", c.MaxPods < 0, c.MaxPods, "must not be negative"},
		{"podsPerCore", c.PodsPerCore < 0, c.PodsPerCore, "must not be negative"},
		{"port", c.Port < 0 || c.Port > 65535, c.Port, "must be a port"},
		{"nodeStatusMaxImages", c.NodeStatusMaxImages != nil && *c.NodeStatusMaxImages < -1, s.ImagesMax, "must be -1 or greater"},
		{"containerLogMaxFiles", c.ContainerLogMaxFiles != nil && *c.ContainerLogMaxFiles < 2, s.LogFilesMax, "must be greater than 1"},
		{"containerLogMonitorInterval", s.LogLookEvery != 0 && s.LogLookEvery < 3*time.Second, s.LogLookEvery, "must be 3s or longer"},
		{"cpuCFSQuotaPeriod", s.QuotaPeriod != 0 && (s.QuotaPeriod < time.Millisecond || s.QuotaPeriod > time.Second), s.QuotaPeriod,
			"must be from 1ms to 1s"},
		{"staticPodPath", c.StaticPodPath != "" && !filepath.IsAbs(c.StaticPodPath), c.StaticPodPath, "must be an absolute path"},
		{"resolvConf", s.ResolvConf != nil && *s.ResolvConf != "" && !filepath.IsAbs(*s.ResolvConf), value(s.ResolvConf), "must be an absolute path"},
		{"fileCheckFrequency", s.StaticPodsEvery < 0, s.StaticPodsEvery, "must not be negative"},
		{"volumeStatsAggPeriod", s.VolumeStatsEvery > 0 && s.VolumeStatsEvery < time.Second, s.VolumeStatsEvery, "must be 1s or longer, or negative"},
		{"nodeStatusUpdateFrequency", s.StatusCheckEvery < 0, s.StatusCheckEvery, "must not be negative"},
		{"nodeStatusReportFrequency", s.StatusReportEvery < 0, s.StatusReportEvery, "must not be negative"},
		{"authentication.webhook.cacheTTL", s.TokenTTL < 0, s.TokenTTL, "must not be negative"},
		{"authorization.webhook.cacheAuthorizedTTL", s.AllowedTTL < 0, s.AllowedTTL, "must not be negative"},
		{"authorization.webhook.cacheUnauthorizedTTL", s.DeniedTTL < 0, s.DeniedTTL, "must not be negative"},
		{"crashLoopBackOff.maxContainerRestartPeriod",
			c.CrashLoopBackOff.MaxContainerRestartPeriod != nil && (s.RestartPauseMax < time.Second || s.RestartPauseMax > restartPauseMaxBound),
			s.RestartPauseMax, "must be from 1s to 5m"},
	} {
		if n.bad {
			return fmt.Errorf("%s: %v: %s", n.path, n.got, n.want)
		}
	}
	return nil
}

func readUsers(c *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	if c.UserNamespaces == nil || c.UserNamespaces.IDsPerPod == nil {
		return nil
	}
	n := *c.UserNamespaces.IDsPerPod
	if n <= 0 || n > math.MaxUint32 || n%userns.UsersUnit != 0 {
		return fmt.Errorf("userNamespaces.idsPerPod: %d: must be a positive multiple of %d", n, userns.UsersUnit)
	}
	s.UsersPerPod = uint32(n)
	return nil
}

func imagePolicy(c *kubeletv1beta1.KubeletConfiguration) collect.Policy {
	p := collect.DefaultPolicy
	if c.ImageGCHighThresholdPercent != nil {
		p.HighPercent = int(*c.ImageGCHighThresholdPercent)
	}
	if c.ImageGCLowThresholdPercent != nil {
		p.LowPercent = int(*c.ImageGCLowThresholdPercent)
	}
	if c.ImageMinimumGCAge.Duration != 0 {
		p.MinAge = c.ImageMinimumGCAge.Duration
	}
	p.MaxAge = c.ImageMaximumGCAge.Duration
	return p
}

func readImages(_ *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	if err := s.Images.Validate(); err != nil {
		return fmt.Errorf("imageGCHighThresholdPercent and its siblings: %w", err)
	}
	return nil
}

func readLogs(c *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	if err := readPodLogsDir(c, s); err != nil {
		return err
	}
	if c.ContainerLogMaxSize == "" {
		return nil
	}
	q, err := resource.ParseQuantity(c.ContainerLogMaxSize)
	if err != nil || q.Value() < logSizeMinBytes {
		return field.Invalid(field.NewPath("containerLogMaxSize"), c.ContainerLogMaxSize, "must be a positive quantity")
	}
	s.LogSizeMaxBytes = q.Value()
	return nil
}

// readPodLogsDir has the rules of upstream, and their words.
func readPodLogsDir(c *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	dir := c.PodLogsDir
	refused := func(why string) error { return field.Invalid(field.NewPath("podLogsDir"), dir, why) }
	switch {
	case dir == "":
		return nil
	case !filepath.IsAbs(dir):
		return refused("must be absolute path")
	case filepath.Clean(dir) != strings.TrimSuffix(dir, "/"):
		return refused("must be normalized")
	case strings.ContainsFunc(dir, func(r rune) bool { return r > unicode.MaxASCII }):
		return refused("must contain ASCII characters only")
	}
	s.PodLogsDir = filepath.Clean(dir)
	return nil
}

// readPulls: like upstream, several pulls at a time have to be asked for in a file; the agent's own default is its own.
func readPulls(c *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	most, serial := c.MaxParallelImagePulls, c.SerializeImagePulls
	switch {
	case most != nil && *most < 1:
		return field.Invalid(field.NewPath("maxParallelImagePulls"), *most, "must be a positive number")
	case most != nil && *most > 1 && serial != nil && *serial:
		return field.Invalid(field.NewPath("maxParallelImagePulls"), *most, "cannot be larger than 1 unless serializeImagePulls is false")
	case most != nil:
		s.PullsMax = int(*most)
	case serial != nil && *serial:
		s.PullsMax = 1
	}
	s.Verification = images.Verification{
		Policy: images.Verify(c.ImagePullCredentialsVerificationPolicy), Allowed: c.PreloadedImagesVerificationAllowlist,
	}
	return s.Verification.Validate()
}
