package paidstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// taken is an answer whose connection can be taken over, if it has one. Some bytes have come already.
type taken struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (t taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if t.conn == nil {
		return nil, nil, http.ErrNotSupported
	}
	buffers := bufio.NewReadWriter(bufio.NewReader(t.conn), bufio.NewWriter(t.conn))
	_, err := buffers.Peek(len("come"))
	return t.conn, buffers, err
}

// TestBothDirectionsPay: of a connection that was taken over, all that is written pays before, all that is read after it, and what had
// come before is not lost.
func TestBothDirectionsPay(t *testing.T) {
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	go func() {
		_, _ = client.Write([]byte("come"))
		_, _ = client.Write([]byte("later"))
	}()
	var out, in []int
	answer := &Answer{taken{httptest.NewRecorder(), server}, func(n int) { out = append(out, n) }, func(n int) { in = append(in, n) }}
	conn, buffers, err := answer.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, len("comelater"))
	if _, err := io.ReadFull(buffers, text); err != nil || string(text) != "comelater" {
		t.Fatalf("%q %v", text, err)
	}
	go func() { _, _ = io.Copy(io.Discard, client) }()
	_, first := conn.Write([]byte("an answer"))
	_, second := buffers.WriteString("more")
	if err := errors.Join(first, second, buffers.Flush()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out, []int{9, 4}) || !slices.Equal(in, []int{5}) {
		t.Errorf("out %v, in %v", out, in)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("a pipe ends one direction: %v", err)
	}
}

// TestNobodyTakesWhatCannotBeTaken: HTTP/2 has no connection to take over.
func TestNobodyTakesWhatCannotBeTaken(t *testing.T) {
	_, _, err := (&Answer{ResponseWriter: taken{ResponseRecorder: httptest.NewRecorder()}}).Hijack()
	if !errors.Is(err, http.ErrNotSupported) {
		t.Error(err)
	}
}

// TestUnits: many small parts cost more than few large ones.
func TestUnits(t *testing.T) {
	if got := []float64{Units(0), Units(unitBytes), Units(10 * unitBytes)}; !slices.Equal(got, []float64{0.1, 1.1, 10.1}) {
		t.Errorf("%v", got)
	}
}
