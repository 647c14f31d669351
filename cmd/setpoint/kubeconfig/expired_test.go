package kubeconfig

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

type failing struct{ error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.error }

// TestExpiredCertificate: an error says that the certificate has expired when it has, and only then.
func TestExpiredCertificate(t *testing.T) {
	alert, down := errors.New("remote error: tls: expired certificate"), &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		end  time.Time
		err  error
		says bool
	}{{time.Now().Add(-time.Hour), alert, true}, {time.Now().Add(time.Hour), alert, false}, {time.Now().Add(-time.Hour), down, false}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = expiring{failing{c.err}, c.end}.RoundTrip(request)
		if !errors.Is(err, c.err) || strings.Contains(err.Error(), "this kubeconfig expired on") != c.says {
			t.Errorf("valid until %v: %v", c.end, err)
		}
	}
}
