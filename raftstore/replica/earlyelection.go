package replica

import (
	"context"
	"errors"
	"syscall"

	"github.com/hashicorp/raft"
)

// Gone calls a member and reports whether no process listens at any of its addresses; a
// member that takes the call is not gone. An error says that nothing is known: a machine
// that is off, or cut off, refuses no connection.
func (r *Replica) Gone(ctx context.Context, id string) (bool, error) {
	addresses, err := r.addresses(id)
	if err != nil {
		return false, err
	}
	for _, address := range addresses {
		conn, err := r.cfg.Dial(ctx, address, MemberName(id))
		if err == nil {
			return false, conn.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return false, err
		}
	}
	return true, nil
}

// LastEntry returns the term and the index of the last entry in the log here.
func (r *Replica) LastEntry() (term, index uint64) {
	if !r.started() {
		return 0, 0
	}
	stats := r.raft.Stats()
	return number(stats, "last_log_term"), number(stats, "last_log_index")
}

// Succeeded reports whether a peer has answered this leader of the term out of a later
// one: then another stands for election, or leads already.
func (r *Replica) Succeeded(term uint64) bool { return r.transport.TermHeard() > term }

// Stand makes a voter, this one or another, stand for election at once, as a leader does that hands over. The
// others vote for it if its log is complete enough, even if they still follow a leader, so call it only when
// the majority has lost its leader, or when that leader gives way.
func (r *Replica) Stand(id string) error {
	request := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
		ProtocolVersion: raft.ProtocolVersionMax,
		ID:              []byte(r.id),
		Addr:            r.transport.EncodePeer(raft.ServerID(r.id), r.transport.LocalAddr()),
	}}
	// The transport finds the address by the id.
	return r.transport.TimeoutNow(raft.ServerID(id), "", request, &raft.TimeoutNowResponse{})
}

// electFirst tells this server to stand for election at once where there can be no leader yet: as a sole voter, and with
// Timing.FirstStands as the first founder. Others wait out their heartbeat timeout, which a sole voter has too, for it may get peers.
func (r *Replica) electFirst() {
	servers := r.raft.GetConfiguration().Configuration().Servers
	first := len(servers) > 0 && servers[0].ID == raft.ServerID(r.id) && servers[0].Suffrage == raft.Voter
	if !first || len(servers) > 1 && !(r.founding && r.cfg.Timing.FirstStands) {
		return
	}
	if err := r.Stand(r.id); err != nil {
		r.cfg.Logger.Warn("the first voter waits out its heartbeat timeout", "err", err)
	}
}
