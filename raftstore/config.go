package raftstore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"github.com/setpoint-io/setpoint/raftstore/founded"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// Server is a server's name, or a member's id, and its host:port.
type Server = replica.Server

// Timing tunes elections and replication; the zero value takes the defaults.
type Timing = replica.Timing

// Config is what a Store needs. Name, DataDir (or Storage), AdvertiseAddress,
// Fatal and Logger are required; Dial and HTTPClient with more than one server.
type Config struct {
	// Name is this server's. Its certificate bears it; see MemberName for its id.
	Name string
	// DataDir holds raft/, snapshots/ and state-marker/.
	DataDir string
	// ClusterID, if set, is written into a new cluster, and data with another one
	// is refused with ErrForeignData.
	ClusterID string
	// InitialServers founds the cluster; the same list on each founder. With one
	// server that is this one, the store is ready in milliseconds. A server that is
	// not in the list asks those in it to be admitted. Later, its addresses win over
	// those that the cluster has stored.
	InitialServers []Server
	// Founded keeps, outside of DataDir, that the cluster was founded, so that it is not founded again when servers lose
	// their data; nil: nothing does, as for clusters that end with their process.
	Founded founded.Keeper
	// New says that this server has never been a member, whatever there is under its name: it waits until somebody adds it, and does
	// not ask for the place of a server that had lost its data.
	New bool
	// AdvertiseAddress is where the other servers reach this one, host:port.
	AdvertiseAddress string
	// Dial opens a connection to a peer's HandleRaftConn. It must authenticate the
	// peer's name, and look the host up anew each time.
	Dial func(ctx context.Context, address, name string) (net.Conn, error)
	// HTTPClient returns a client for the peer's Handler, which authenticates the
	// peer's name, and the URL before the handler's pattern, such as https://host:port.
	// It may be called often.
	HTTPClient func(name, address string) (client *http.Client, baseURL string)
	// AuthorizePeer decides whether a request to Handler comes from a server of
	// this cluster. Without it every request is refused.
	AuthorizePeer func(*http.Request) error
	// Fatal is called once when the replica must not go on: its disk failed or
	// stalled, its data is corrupt, or its state diverged. The process should exit.
	Fatal  func(error)
	Timing Timing
	// FeatureLevel is the highest that this server can apply; 0 takes that of this
	// release. Tests set it, to have releases side by side.
	FeatureLevel uint64
	// HoldFeatureLevel, if not 0, is a level beyond which this server does not let the cluster rise, so that all servers can go back to
	// the release that had it; a cluster beyond it stays where it is. A new cluster begins at what its founders can all the same.
	HoldFeatureLevel uint64
	// ObjectsLimitBytes bounds what all objects take in memory: while they take more, only
	// what makes room, and the system itself, is written (ErrNoSpace). 0 means a fifth of
	// the memory that this process may use, less than 0 no bound. The leader's counts.
	ObjectsLimitBytes int64
	// RingBytes bounds the watch history; 0 means 32 MiB.
	RingBytes int64
	Logger    *slog.Logger
	// Applying, if not nil, is called before each entry is applied: in fake time that
	// takes none, and tests let it take some.
	Applying func(index uint64)
	// Disk or Storage replace the files of DataDir, for tests in memory.
	Disk    replica.Disk
	Storage *replica.Storage
}

// MemberName returns the server's name in a member id.
func MemberName(id string) string { return replica.MemberName(id) }

// disk is where the replica's data lies.
func (c *Config) disk() replica.Disk {
	if c.Disk != nil || c.DataDir == "" {
		return c.Disk
	}
	return replica.Files{Dir: c.DataDir, Logger: c.Logger}
}

// Validate says what is missing.
func (c *Config) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("raftstore: Name is required")
	case c.DataDir == "" && c.Storage == nil && c.Disk == nil:
		return errors.New("raftstore: DataDir is required")
	case c.HTTPClient == nil && len(c.InitialServers) > 1:
		return errors.New("raftstore: HTTPClient is required with several servers")
	case c.Logger == nil:
		return errors.New("raftstore: Logger is required")
	}
	return nil
}
