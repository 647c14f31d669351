package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// greetingLimit bounds waiting for the member id at the beginning of a connection.
const greetingLimit = 5 * time.Second

// errWrongMember: the server has another life than the one that was called.
var errWrongMember = errors.New("connection for another member")

// dialPeer opens a connection to a member, at the operator's address for its name
// or else at the replicated one. The certificate proves the name only, and a
// machine that was replaced may still run under it: so the member id is called.
func (r *Replica) dialPeer(ctx context.Context, address, id string) (net.Conn, error) {
	var failed []error
	addresses := r.addresses(address, id)
	for i, candidate := range addresses {
		conn, err := r.dialMember(ctx, candidate, id, len(addresses)-i)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// addresses are where a member may be, the best first.
func (r *Replica) addresses(stored, id string) []string {
	current := r.operatorAddress(MemberName(id))
	if current == "" || current == stored {
		return []string{stored}
	}
	return []string{current, stored}
}

// dialMember takes its share of the time that is left for several addresses.
func (r *Replica) dialMember(ctx context.Context, address, id string, share int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(share))
		defer cancel()
	}
	conn, err := r.cfg.Dial(ctx, address, MemberName(id))
	if err != nil {
		return nil, err
	}
	if err := greet(conn, id); err != nil {
		return nil, errors.Join(fmt.Errorf("calling %s at %s: %w", id, address, err), conn.Close())
	}
	return conn, nil
}

// greet says which member is called, and waits until the other side agrees.
func greet(conn net.Conn, id string) error {
	if err := conn.SetDeadline(time.Now().Add(dialLimit)); err != nil {
		return err
	}
	if _, err := conn.Write(append([]byte{byte(len(id))}, id...)); err != nil {
		return err
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return fmt.Errorf("%w: %w", errWrongMember, err)
	}
	return conn.SetDeadline(time.Time{})
}

// answer reads whom the other side calls, and agrees if it is this member.
func answer(conn net.Conn, id string) error {
	if err := conn.SetDeadline(time.Now().Add(greetingLimit)); err != nil {
		return err
	}
	var length [1]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return err
	}
	called := make([]byte, length[0])
	if _, err := io.ReadFull(conn, called); err != nil {
		return err
	}
	if string(called) != id {
		return fmt.Errorf("%w: %q, this is %q", errWrongMember, called, id)
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// HandleConn serves one raft connection that a peer opened, already
// authenticated. It returns when the connection is closed. A replica that takes no
// part in raft yet closes it at once.
func (r *Replica) HandleConn(conn net.Conn) {
	if !r.started() {
		conn.Close()
		return
	}
	if err := answer(conn, r.id); err != nil {
		r.cfg.Logger.Debug("raft connection refused", "err", err)
		conn.Close()
		return
	}
	r.stream.handle(conn)
}
