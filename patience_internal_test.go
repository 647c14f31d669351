package setpoint

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// losing answers nothing until a moment, and then that all is well.
type losing struct{ until time.Time }

func (l losing) ask() error {
	if time.Now().Before(l.until) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (l losing) RoundTrip(*http.Request) (*http.Response, error) {
	if err := l.ask(); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// Clients are patient while a server is away that was killed, and shortly after that. What is lost while all servers run has failed, of
// those who ask and of the test itself.
func TestOnlyACrashExcusesALostRequest(t *testing.T) {
	lost := func(y *years) (own, others bool) {
		cut := losing{time.Now().Add(2 * time.Second)}
		others = y.patiently(cut.ask) != nil
		cut.until = time.Now().Add(2 * time.Second)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/path", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		before := len(y.failed)
		if response, err := (again{y, cut}).RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
		return len(y.failed) > before, others
	}
	synctest.Test(t, func(t *testing.T) {
		y := &years{T: t, c: &Cluster{}, requests: map[string]int{}}
		expect := func(when string, want bool) {
			t.Helper()
			if own, others := lost(y); own != want || others != want {
				t.Errorf("%s: it counts as a failure: %t, and one of the test: %t, want %t", when, others, own, want)
			}
		}
		expect("before", true)
		back := y.crashed()
		expect("while a server is away", false)
		time.Sleep(time.Hour)
		expect("while it is away for long", false)
		back()
		expect("just after it is back", false)
		time.Sleep(backFor)
		expect("later", true)
	})
}
