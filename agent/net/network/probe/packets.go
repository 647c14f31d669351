package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// answerBytesMax is what is read of an answer.
const answerBytesMax = 512

var errOther = errors.New("the answer is to something else")

// questionFor asks DNS for the address of the API, a name that the cluster's DNS knows by itself.
func questionFor(domain string) []byte {
	// RFC 1035: the number, recursion desired, and one question.
	message := []byte{0x53, 0x50, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq("kubernetes.default.svc."+strings.Trim(domain, "."), ".") {
		message = append(append(message, byte(len(label))), label...)
	}
	return append(message, 0, 0, 1, 0, 1) // the root, type A, class IN
}

// ask asks once, from the namespace of the calling thread. A connection of TCP is answer enough.
func (t Target) ask(ctx context.Context, question []byte) error {
	conn, err := dial(ctx, t.Network, t.At)
	if err != nil {
		return err
	}
	defer conn.Close()
	if t.Network != "udp" {
		return nil
	}
	answer, err := exchange(conn, question, func() error { return nil })
	if err == nil && !bytes.HasPrefix(answer, question[:2]) {
		return errOther
	}
	return err
}

func dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	dialer := net.Dialer{Timeout: attemptTimeout}
	return dialer.DialContext(ctx, network, to.String())
}

// exchange sends, lets the other side answer, and reads that.
func exchange(conn net.Conn, message []byte, answer func() error) ([]byte, error) {
	if err := conn.SetDeadline(time.Now().Add(attemptTimeout)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(message); err != nil {
		return nil, err
	}
	if err := answer(); err != nil {
		return nil, err
	}
	buffer := make([]byte, answerBytesMax)
	n, err := conn.Read(buffer)
	return buffer[:n], err
}

// echo sends back what comes to it from the other namespace. It has no lock: one goroutine calls.
type echo struct {
	net.PacketConn
	asked uint64
}

func listen(outside *room) (*echo, error) {
	conn, err := inside(outside, func() (net.PacketConn, error) {
		return net.ListenPacket("udp4", netip.AddrPortFrom(outsideAddress.Addr(), 0).String())
	})
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	return &echo{PacketConn: conn}, nil
}

// ask sends it something, from the namespace of the calling thread, and reads what comes back.
func (e *echo) ask(ctx context.Context) error {
	conn, err := dial(ctx, "udp4", e.LocalAddr().(*net.UDPAddr).AddrPort())
	if err != nil {
		return err
	}
	defer conn.Close()
	e.asked++
	message := binary.BigEndian.AppendUint64([]byte("setpoint probe "), e.asked)
	answer, err := exchange(conn, message, func() error { return e.answer(message) })
	if err == nil && !bytes.Equal(answer, message) {
		return errOther
	}
	return err
}

// answer waits for a message and sends it back. What else comes, such as an earlier one that was late, is left.
func (e *echo) answer(message []byte) error {
	if err := e.SetDeadline(time.Now().Add(attemptTimeout)); err != nil {
		return err
	}
	buffer := make([]byte, answerBytesMax)
	for {
		n, from, err := e.ReadFrom(buffer)
		if err != nil {
			return err
		}
		if bytes.Equal(buffer[:n], message) {
			_, err = e.WriteTo(message, from)
			return err
		}
	}
}
