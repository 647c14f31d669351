package setpoint

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"

	"context"

	"github.com/setpoint-io/setpoint/controllers/leader"
	"github.com/setpoint-io/setpoint/raftstore"
)

// statusPath is a Connect procedure in its JSON form: POST {} returns a ServerStatus.
const statusPath = "/setpoint.v1.ClusterService/Status"

// ServerStatus is what one server says of itself and of the cluster, for
// `setpoint cluster status`.
type ServerStatus struct {
	Name     string `json:"name"`
	Leader   string `json:"leader"`
	Term     uint64 `json:"term"`
	Revision uint64 `json:"revision"`
	Applied  uint64 `json:"applied"`
	LogBytes int64  `json:"logBytes"`
	// StateHash is of all objects at StateRevision, in hexadecimal digits: servers at
	// one revision have the same.
	StateHash     string        `json:"stateHash"`
	StateRevision uint64        `json:"stateRevision"`
	SyncP99       time.Duration `json:"syncP99Nanoseconds"`
	// FreeBytes is the room on the disk of the data directory, HeadroomBytes what must
	// stay free of it: with less, writes are refused (LowSpace).
	FreeBytes     int64 `json:"freeBytes"`
	HeadroomBytes int64 `json:"headroomBytes"`
	LowSpace      bool  `json:"lowSpace,omitempty"`

	Servers []MemberStatus `json:"servers"`
	// Controllers maps each Lease of the control loops to its holder.
	Controllers map[string]string `json:"controllers"`
	// Gossip are the members of the pool as this server sees them; empty without gossip.
	Gossip []GossipMember `json:"gossip,omitempty"`
}

// MemberStatus is one replica in the eyes of another.
type MemberStatus struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Voter   bool   `json:"voter"`
}

// GossipMember is one member of the gossip pool.
type GossipMember struct {
	Name  string `json:"name"`
	Role  string `json:"role"`
	State string `json:"state"`
}

// Status describes this server.
func (s *Server) Status() ServerStatus {
	log := s.log.Status()
	status := ServerStatus{
		Name: log.Name, Leader: raftstore.MemberName(log.LeaderID), Term: log.Term,
		Revision: log.Revision, Applied: log.AppliedIndex, LogBytes: log.LogBytes, SyncP99: log.SyncP99,
		FreeBytes: log.Space.FreeBytes, HeadroomBytes: log.Space.HeadroomBytes, LowSpace: log.Space.Low,
		Controllers: s.leaseHolders(), Gossip: s.gossipMembers(),
	}
	revision, hash := s.log.StateHash()
	status.StateHash, status.StateRevision = hex.EncodeToString(hash[:]), revision
	for _, member := range log.Servers {
		status.Servers = append(status.Servers, MemberStatus{Name: raftstore.MemberName(member.ID), Address: member.Address, Voter: member.Voter})
	}
	return status
}

// leaseReadTimeout bounds the look at the Leases on a server that has not caught
// up yet; they are left out then.
const leaseReadTimeout = 200 * time.Millisecond

func (s *Server) leaseHolders() map[string]string {
	table := s.storage.Table(coordinationv1.SchemeGroupVersion.WithResource("leases"))
	holders := map[string]string{}
	ctx, cancel := context.WithTimeout(context.Background(), leaseReadTimeout)
	defer cancel()
	for _, name := range leader.LeaseNames() {
		cached, err := table.Get(ctx, leader.Namespace, name, "0")
		if err != nil {
			continue // no leader has acted yet
		}
		if holder := cached.Object().(*coordinationv1.Lease).Spec.HolderIdentity; holder != nil {
			holders[name] = *holder
		}
	}
	return holders
}

func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "use POST with an empty JSON object", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.Status()) // the client is gone if this fails
}

// FetchStatus asks one server for its status with the credentials of a kubeconfig.
func FetchStatus(ctx context.Context, config *rest.Config) (*ServerStatus, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return fetchStatus(ctx, client, config.Host)
}

func fetchStatus(ctx context.Context, client *http.Client, base string) (*ServerStatus, error) {
	status := &ServerStatus{}
	err := callServer(ctx, client, base+statusPath, struct{}{}, status)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		return nil, &statusError{fmt.Sprintf("%d %s", refusal.StatusCode, http.StatusText(refusal.StatusCode))}
	}
	return status, err
}

type statusError struct{ status string }

func (e *statusError) Error() string { return "the server answered " + e.status }
