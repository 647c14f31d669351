// Package setpoint is the whole control plane as a library: a replica of the
// server, an agent, or both with everything between them in one process.
//
// It wires and owns nothing else: the replicated store (raftstore), the API over
// it (apiserver), the control loops on the leader (controllers), the agent of a
// machine (agent). Where two of these worlds meet, one declares a small interface
// and this package fills it. cmd/setpoint turns flags into the Configs here.
//
// Start with StartServer for one replica, RunAgent for a machine, RunDev for a
// cluster in one process. Each blocks or returns as its comment says, and ends
// all it started when its context ends.
package setpoint

import (
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/agent"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
)

// Version is Setpoint's own version. The Kubernetes version it serves stands in
// apiserver/discovery.
const Version = "0.1.0"

// DefaultDataDir is where servers and agents keep what must survive a restart.
const DefaultDataDir = "/var/lib/setpoint"

// AdminKubeconfig is the file below the data directory with the administrator's
// credentials and one context for each server.
const AdminKubeconfig = pki.AdminKubeconfig

// DefaultAgentPort is where servers reach an agent.
const DefaultAgentPort = agent.DefaultPort

// DefaultPort is the port of the API, the services of the parts, and Raft.
const DefaultPort = 6443

// The parts of a server as the API sees them.
var (
	controllersUser = &user.DefaultInfo{Name: "system:kube-controller-manager", Groups: []string{pki.GroupServers, user.AllAuthenticated}}
	schedulerUser   = &user.DefaultInfo{Name: "system:kube-scheduler", Groups: []string{pki.GroupServers, user.AllAuthenticated}}
	serverUser      = &user.DefaultInfo{Name: "system:setpoint", Groups: []string{pki.GroupServers, user.AllAuthenticated}}
)
