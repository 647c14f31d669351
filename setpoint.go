// Package setpoint is a whole Kubernetes control plane in the process that imports it.
//
//	cluster, err := setpoint.Start(ctx, setpoint.Config{})
//	defer cluster.Stop()
//	err = cluster.Ready(ctx)
//	config, err := cluster.RESTConfig() // for client-go, controller-runtime, Helm
//
// It owns how replicas, simulated nodes and their directory are put together (Config, Start,
// Cluster). Programs, setpointtest and `setpoint dev` start clusters by it. It links no container
// runtime: whoever wants real pods hands agent/host's RunNode to Cluster.RunNode.
//
// Public are this package, setpointtest with what is below it, and agent/host. Every other package of the module can be imported,
// and changes without notice.
//
// Promises: everything that Start began has ended when Stop returns, goroutines included. It
// sets nothing for the whole process (garbage collection, signals, loggers, default registries,
// feature gates), but one limit that a library keeps in a package variable: how much the copies
// of a JSON patch may add (jsonpatch.AccumulatedCopySizeLimit, set by apiserver/rest).
//
// Tested by its Example, here, and by the scripts of cmd/setpoint.
package setpoint

import (
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server"
)

// Version is Setpoint's own version.
const Version = process.Version

// KubernetesVersion is the version of Kubernetes whose API is served, such as "v1.37.2".
const KubernetesVersion = server.KubernetesVersion

// DefaultDataDir is where servers and agents keep what must survive a restart.
const DefaultDataDir = "/var/lib/setpoint"

// AdminKubeconfig is the file below the data directory with the administrator's
// credentials and one context for each server.
const AdminKubeconfig = trust.AdminKubeconfig

// DefaultPort is the port of the API, the services of the parts, and Raft.
const DefaultPort = server.DefaultPort
