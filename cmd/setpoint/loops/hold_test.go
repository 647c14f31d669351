package loops

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
)

// shellOf asks the servers in turn, as the command does.
func shellOf(servers ...*httptest.Server) *Shell {
	return &Shell{
		Escaped: func(w io.Writer) io.Writer { return w },
		AskServers: func(ctx context.Context, _ string, _ time.Duration, ask func(context.Context, *rest.Config) error) (err error) {
			for _, server := range servers {
				if err = ask(ctx, &rest.Config{Host: server.URL}); err == nil || errors.As(err, new(*admin.Refusal)) {
					return err
				}
			}
			return err
		},
	}
}

// TestAStepIsSentOnce: a server that breaks off may have ordered it. What cannot be reached has not.
func TestAStepIsSentOnce(t *testing.T) {
	asked := 0
	breaks := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked++
		panic(http.ErrAbortHandler)
	}))
	defer breaks.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for order, want := range map[string]int{admin.StepLoop: 1, admin.PauseLoop: 2} {
		asked = 0
		_, err := shellOf(closed, breaks, breaks).send(t.Context(), "", admin.PaceOrder{Order: order})
		if err == nil || errors.Is(err, errUnknown) != (order == admin.StepLoop) || asked != want {
			t.Errorf("%s: asked %d times, %v", order, asked, err)
		}
	}
}

func TestAStepOfALoopThatEnded(t *testing.T) {
	if err := (&options{}).showStep(t.Context(), io.Discard, admin.PaceAnswer{}); !errors.Is(err, errEnded) {
		t.Error(err)
	}
}

// TestAWatchOutlivesALeader: what passes does not end it, a refusal does.
func TestAWatchOutlivesALeader(t *testing.T) {
	for code, ends := range map[int]bool{http.StatusServiceUnavailable: false, http.StatusForbidden: true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }))
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetErr(io.Discard)
		w := &watcher{options: &options{Shell: shellOf(server)}, cmd: cmd}
		if err := w.more(); (err != nil) != ends {
			t.Errorf("%d: %v", code, err)
		}
		server.Close()
	}
}
