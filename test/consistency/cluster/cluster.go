package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The sizes of clusters: with ServersMin one server may be missing, with ServersMax two.
const (
	ServersMin = 3
	ServersMax = 5
	// Nodes is how many agents there are, where a cluster has some.
	Nodes = 3
)

// An Ability is something that not every form of cluster can do.
type Ability string

// The abilities.
const (
	Network Ability = "network" // Cut and Lose
	Unplug  Ability = "unplug"  // Unplug and Plug
	Files   Ability = "files"   // DataDir is a folder of this machine
	Disk    Ability = "disk"    // server SmallDisk has a small file system of its own
	Power   Ability = "power"   // CutPower, SlowSyncs, FailSyncs
	Clock   Ability = "clock"   // PID is a process of this machine which may be traced
	Members Ability = "members" // Remove and Join
	Spare   Ability = "spare"   // two servers may be missing at once
	Agents  Ability = "agents"  // Nodes real agents, which reach every server that is not unplugged
)

// SmallDisk is the server whose disk can be filled.
const SmallDisk = 2

// A Pair is a direction: packets from one server to another.
type Pair struct{ From, To int }

// A Cluster is ServersMin servers or more, numbered from 0.
type Cluster interface {
	// Size is how many servers there are; it never changes.
	Size() int
	Can(a Ability) bool
	// URL is where the API of a server answers, reached through Dial with TLS.
	URL(i int) string
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	TLS() *tls.Config

	// Start starts a server which does not run; it does nothing to one that runs.
	Start(i int) error
	// Kill ends a server at once (SIGKILL); Stop asks it to end (SIGTERM) and waits.
	Kill(i int) error
	Stop(i int) error
	Pause(i int) error
	Resume(i int) error
	Running(i int) bool

	// Cut drops all packets of these directions; Lose drops a share of all packets between
	// servers, in per cent; Mend ends both.
	Cut(pairs []Pair) error
	Lose(percent int) error
	Mend() error
	// Unplug takes a server off the network, for clients too; Plug ends it.
	Unplug(i int) error
	Plug(i int) error

	// CutPower takes the power from PowerServer, which ends; the seed says which of the writes that were
	// not synced survive.
	CutPower(seed uint64) error
	// SlowSyncs makes every sync of PowerServer's disk take so long, FailSyncs fail with EIO; 0 and false end it.
	SlowSyncs(d time.Duration) error
	FailSyncs(fail bool) error

	// Remove ends a server's membership, its process, and what is on its disk; Join makes a new server of the same name and
	// address a member.
	Remove(i int) error
	Join(i int) error

	DataDir(i int) string
	PID(i int) int
	Close() error
}

// Name is a server's name.
func Name(i int) string { return fmt.Sprintf("server-%d", i+1) }

// Status is what a server says of itself (`setpoint cluster status`).
type Status struct {
	Name     string `json:"name"`
	Leader   string `json:"leader"`
	Term     uint64 `json:"term"`
	Revision uint64 `json:"revision"`
	Applied  uint64 `json:"applied"`
	// StateHash is of all objects at StateRevision, in hexadecimal digits.
	StateHash     string `json:"stateHash"`
	StateRevision uint64 `json:"stateRevision"`
	Servers       []struct {
		Name  string `json:"name"`
		Voter bool   `json:"voter"`
	} `json:"servers"`
}

// Voters counts them.
func (s *Status) Voters() int {
	voters := 0
	for _, server := range s.Servers {
		if server.Voter {
			voters++
		}
	}
	return voters
}

const (
	statusPath    = "/setpoint.v1.ClusterService/Status"
	statusTimeout = time.Second
)

// Ask asks a server for its status.
func Ask(ctx context.Context, c Cluster, i int) (*Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	transport := &http.Transport{DialContext: c.Dial, TLSClientConfig: c.TLS(), DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL(i)+statusPath, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", Name(i), response.Status)
	}
	status := &Status{}
	return status, json.NewDecoder(response.Body).Decode(status)
}

var errNoLeader = errors.New("no server knows a leader that leads")

// Leader finds the server that leads, by its own word and the newest term.
func Leader(ctx context.Context, c Cluster) (int, error) {
	leader, term := -1, uint64(0)
	for i := range c.Size() {
		if !c.Running(i) {
			continue
		}
		status, err := Ask(ctx, c, i)
		if err == nil && nameOf(status.Leader) == Name(i) && status.Term > term {
			leader, term = i, status.Term
		}
	}
	if leader < 0 {
		return 0, errNoLeader
	}
	return leader, nil
}

// nameOf is the name in a member's id: a replica that has lost its data comes
// back as name+suffix.
func nameOf(id string) string {
	for i, c := range id {
		if c == '+' {
			return id[:i]
		}
	}
	return id
}

// access is what is needed to talk to the servers.
type access struct {
	urls []string
	tls  *tls.Config
}

// readAccess reads the kubeconfigs of so many servers in a trust folder.
func readAccess(trust string, servers int) (*access, error) {
	a := &access{urls: make([]string, servers)}
	for i := range a.urls {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(trust, Name(i)+".kubeconfig"))
		if err != nil {
			return nil, err
		}
		a.urls[i] = config.Host
		if a.tls, err = rest.TLSConfigFor(config); err != nil {
			return nil, err
		}
	}
	// One connection for each request at a time: one that hangs holds up no other.
	a.tls.NextProtos = []string{"http/1.1"}
	return a, nil
}

// Size implements Cluster.
func (a *access) Size() int { return len(a.urls) }

// URL implements Cluster.
func (a *access) URL(i int) string { return a.urls[i] }

// TLS implements Cluster.
func (a *access) TLS() *tls.Config { return a.tls.Clone() }
