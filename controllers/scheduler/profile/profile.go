package profile

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// Upstream's defaults.
const (
	backoffMinDefault    = time.Second
	backoffMaxDefault    = 10 * time.Second
	volumeWaitMaxDefault = 10 * time.Minute

	deviceSearchMaxDefault = 10 * time.Second
	deviceWaitMaxDefault   = 10 * time.Minute
)

// Config is what the scheduler is configured with. The zero value is for Or to fill.
type Config struct {
	// Profiles have different names; at least one.
	Profiles []Profile
	// BackoffMin is how long a pod waits after its first failed attempt; it doubles with each attempt up to BackoffMax.
	BackoffMin, BackoffMax time.Duration
}

// Profile is how pods of one schedulerName are placed. It is not changed once it is made.
type Profile struct {
	// Name is the schedulerName.
	Name string
	// Plugins in the order in which they judge a node; the first that rejects it explains the rejection.
	Plugins []Plugin
	// NodesToScore is the share of nodes, in percent, after which no more that fit are looked for; 0 is upstream's
	// adaptive share.
	NodesToScore int32
	// Preemption; nil: pods are not evicted for others.
	Preemption *Preemption
	// VolumeWaitMax is how long a pod that has a node waits for its volumes; then it is tried again.
	VolumeWaitMax time.Duration
	// DeviceSearchMax is how long devices are looked for on one node, 0 without limit; DeviceWaitMax is how long a pod that has a
	// node waits until its devices are ready.
	DeviceSearchMax, DeviceWaitMax time.Duration
}

// Plugin is a plugin with what it is used for.
type Plugin struct {
	plugin.Plugin
	// Filters and Scores tell whether it rejects nodes, and prefers some. What it does not implement does not count.
	Filters, Scores bool
	// Weight multiplies its normalized scores; at least 1.
	Weight int64
}

// Preemption limits on how many nodes an eviction is compared: on the larger of both numbers.
type Preemption struct {
	NodesPercent  int // of the nodes on which an eviction might help, 0 to 100
	NodesAbsolute int
}

// Default is the configuration without a file.
func Default() Config {
	p := Profile{
		Name: corev1.DefaultSchedulerName, VolumeWaitMax: volumeWaitMaxDefault,
		DeviceSearchMax: deviceSearchMaxDefault, DeviceWaitMax: deviceWaitMaxDefault,
		Preemption: &Preemption{NodesAbsolute: candidatesDefault},
	}
	p.Plugins = enabledPlugins(defaultSet(), nil)
	return Config{Profiles: []Profile{p}, BackoffMin: backoffMinDefault, BackoffMax: backoffMaxDefault}
}

// Or is the config, or the other one if it is zero.
func (c Config) Or(other Config) Config {
	if len(c.Profiles) == 0 {
		return other
	}
	return c
}

// Upstream's limits of an adaptive share of nodes.
const (
	nodesToScoreMin     = 100 // that many are always looked at
	adaptivePercentMax  = 50
	adaptivePercentMin  = 5
	nodesPerPercentLess = 125
)

// Enough is how many nodes that fit suffice in a cluster of that many nodes.
func (p *Profile) Enough(nodes int) int {
	if nodes < nodesToScoreMin {
		return nodes
	}
	percent := int(p.NodesToScore)
	if percent == 0 {
		percent = max(adaptivePercentMax-nodes/nodesPerPercentLess, adaptivePercentMin)
	}
	return max(nodes*percent/100, nodesToScoreMin)
}

// Compared is how many evictions are compared where one might help on that many nodes.
func (p *Preemption) Compared(nodes int) int {
	return min(max(nodes*p.NodesPercent/100, p.NodesAbsolute), nodes)
}
