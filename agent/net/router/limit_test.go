package router

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// TestNamespacesShareRequests: requests that do not end take places of their namespace only, and who asks for more of it is told.
func TestNamespacesShareRequests(t *testing.T) {
	s := newSite(t, ingress("a.com"), service("a.com"), slice("a.com", "10.0.0.1"))
	s.pod("10.0.0.1", echo)
	s.serves("a.com", 1)
	of := func(namespace string) *table.Route {
		return &table.Route{Ingress: types.NamespacedName{Namespace: namespace}}
	}
	taken := 0
	leave, err := s.router.enter(of("n"))
	for ; err == nil; taken++ {
		_, err = s.router.enter(of("n"))
	}
	if half := requestLimits().All / 2; taken < half-1 || taken > half+1 {
		t.Errorf("one namespace has %d of %d", taken, requestLimits().All)
	}
	ask := func() (int, string) {
		answer, text := s.ask(http.MethodGet, "a.com", "/", "")
		return answer.StatusCode, text
	}
	if code, text := ask(); code != http.StatusTooManyRequests || !strings.Contains(text, "belong to namespace n, which is its share") {
		t.Errorf("%d %s", code, text)
	}
	if _, err := s.router.enter(of("other")); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	leave()
	if code, text := ask(); code != http.StatusOK {
		t.Errorf("after one has ended: %d %s", code, text)
	}
}

// TestSilentConnectionsMakeRoom: who connects and says nothing keeps nobody out.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	s := newSite(t, ingress("a.com"), service("a.com"), slice("a.com", "10.0.0.1"))
	s.pod("10.0.0.1", echo)
	var first net.Conn
	for range silentMax/2 + 1 { // half is the share of one address
		c, err := net.Dial("tcp", s.plain)
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
		t.Errorf("the oldest of too many silent connections: %v", err)
	}
	s.serves("a.com", 1)
}
