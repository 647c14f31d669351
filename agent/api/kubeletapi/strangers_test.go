package kubeletapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/internal/strangers"
)

// TestStrangersAtTheNodesPort: connections that say nothing make room for others, and those of a client that was let in stay.
func TestStrangersAtTheNodesPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Run(ctx, listener, Config{Runtime: podstest.New(nil), Pods: onePod{&corev1.Pod{}}}) }()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	ask := func() (again bool) {
		t.Helper()
		trace := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { again = c.Reused }})
		request, err := http.NewRequestWithContext(trace, http.MethodGet, "http://"+listener.Addr().String()+"/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		return again
	}
	ask()
	var first net.Conn
	for range strangers.Limit() {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if first == nil {
			first = c
		}
	}
	_ = first.SetReadDeadline(time.Now().Add(headerTimeout / 2)) // it ends by itself after headerTimeout
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest of too many strangers: %v", err)
	}
	if !ask() {
		t.Error("the connection of a client that was let in has gone")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
