package admin

import (
	"encoding/hex"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"context"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/encryption"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/server/backups"
	"github.com/setpoint-io/setpoint/server/leader"
	"github.com/setpoint-io/setpoint/server/liveness"
)

// ServerStatus is what one server says of itself and of the cluster, for
// `setpoint cluster status`.
type ServerStatus struct {
	Name   string `json:"name"`
	Leader string `json:"leader"`
	Term   uint64 `json:"term"`
	// Version is the server's release, KubernetesVersion that of the API which it serves.
	Version           string `json:"version"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// FeatureLevel is what all members have agreed to understand, HighestLevel what this server can, HeldLevel, if not 0, where it holds
	// the cluster.
	FeatureLevel uint64 `json:"featureLevel"`
	HighestLevel uint64 `json:"highestLevel"`
	HeldLevel    uint64 `json:"heldLevel,omitempty"`
	Revision     uint64 `json:"revision"`
	Applied      uint64 `json:"applied"`
	LogBytes     int64  `json:"logBytes"`
	// StateHash is of all objects at StateRevision, in hexadecimal digits: servers at
	// one revision have the same.
	StateHash     string        `json:"stateHash"`
	StateRevision uint64        `json:"stateRevision"`
	SyncP99       time.Duration `json:"syncP99Nanoseconds"`
	// FreeBytes is the room on the disk of the data directory, HeadroomBytes what must
	// stay free of it: with less (LowSpace) on most servers, writes are refused. FullDisk:
	// this server takes no more entries from the leader and falls behind.
	FreeBytes     int64 `json:"freeBytes"`
	HeadroomBytes int64 `json:"headroomBytes"`
	LowSpace      bool  `json:"lowSpace,omitempty"`
	FullDisk      bool  `json:"fullDisk,omitempty"`
	// ObjectsBytes is what all objects take in memory. While this server leads and they take
	// ObjectsLimitBytes, writes are refused.
	ObjectsBytes      int64 `json:"objectsBytes"`
	ObjectsLimitBytes int64 `json:"objectsLimitBytes"`

	// Encryption is of what is or should be encrypted; nil shortly after the start.
	Encryption *encryption.Status `json:"encryption,omitempty"`

	Servers []MemberStatus `json:"servers"`
	// Controllers maps each Lease of the control loops to its holder.
	Controllers map[string]string `json:"controllers"`
	// Certificates are when those end that this server uses or knows, as expiry.Known.All. Its own are renewed before, and nodes' by nodes.
	Certificates []trust.Expiry `json:"certificates"`
	// Backups are those that this server makes by a schedule; nil without one.
	Backups *backups.State `json:"backups,omitempty"`
	// History is what this server keeps of what objects were; nil: nothing.
	History *history.Status `json:"history,omitempty"`
	// Rotations are those of keys that are under way, as this server knows, Held which of them it has.
	Rotations []rotation.State `json:"rotations,omitempty"`
	Held      []rotation.Held  `json:"held,omitempty"`
	// Gossip are the members of the pool as this server sees them, and who should be
	// one and is not (State "absent"); empty without gossip.
	Gossip []liveness.GossipMember `json:"gossip,omitempty"`
}

// MemberStatus is one replica in the eyes of another.
type MemberStatus struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Voter   bool   `json:"voter"`
}

// Status describes this server.
func (a *Admin) Status() ServerStatus {
	log := a.config.Log.Status()
	status := ServerStatus{
		Name: log.Name, Leader: raftstore.MemberName(log.LeaderID), Term: log.Term,
		Version: process.Version, KubernetesVersion: discovery.KubernetesVersion,
		FeatureLevel: log.FeatureLevel, HighestLevel: log.HighestLevel, HeldLevel: log.HeldLevel,
		Revision: log.Revision, Applied: log.AppliedIndex, LogBytes: log.LogBytes, SyncP99: log.SyncP99,
		FreeBytes: log.Space.FreeBytes, HeadroomBytes: log.Space.HeadroomBytes, LowSpace: log.Space.Low, FullDisk: log.Space.Full,
		ObjectsBytes: log.ObjectsBytes, ObjectsLimitBytes: log.ObjectsLimitBytes,
		Certificates: a.config.Certificates(), Controllers: a.leaseHolders(), Gossip: a.config.Gossip(), Encryption: a.config.Encryption(),
		Backups: a.config.Backups.State(), History: a.config.History.Status(),
		Rotations: a.config.Rotations.UnderWay(), Held: a.config.Rotations.Held(),
	}
	revision, hash := a.config.Log.StateHash()
	status.StateHash, status.StateRevision = hex.EncodeToString(hash[:]), revision
	for _, member := range log.Servers {
		status.Servers = append(
			status.Servers,
			MemberStatus{Name: raftstore.MemberName(member.ID), Address: member.Address, Voter: member.Voter},
		)
	}
	return status
}

// leaseReadTimeout bounds the look at the Leases on a server that has not caught
// up yet; they are left out then.
const leaseReadTimeout = 200 * time.Millisecond

func (a *Admin) leaseHolders() map[string]string {
	table := a.config.Storage.Table(coordinationv1.SchemeGroupVersion.WithResource("leases"))
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
