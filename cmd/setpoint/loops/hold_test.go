package loops

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
				if err = ask(ctx, &rest.Config{Host: server.URL}); admin.IsFinal(err) {
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
		if err == nil || errors.Is(err, admin.ErrStepUnknown) != (order == admin.StepLoop) || asked != want {
			t.Errorf("%s: asked %d times, %v", order, asked, err)
		}
	}
}

func TestAStepOfALoopThatEnded(t *testing.T) {
	if err := (&options{}).showStep(t.Context(), io.Discard, admin.PaceAnswer{}); !errors.Is(err, admin.ErrLoopEnded) {
		t.Error(err)
	}
}

// TestAWatchFollowsANewLeader with all of its passes, by whatever clock, and says once that it does, and how many were forgotten.
func TestAWatchFollowsANewLeader(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, string(body))
		_, _ = io.WriteString(w, `{"server":"b","term":7,"next":9,"missed":3,"passes":[`+
			`{"loop":"l","key":"k","at":"2001-01-01T00:00:00Z","writes":1,"acts":[{"did":"create x"}]}]}`)
	}))
	defer server.Close()
	var out, said strings.Builder
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	w := &watcher{options: &options{Shell: shellOf(server), output: "table"}, cmd: cmd, server: "a", term: 6, next: 500}
	for range 2 {
		if err := w.more(); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 || !strings.Contains(asked[1], `"passesFrom":0`) || w.next != 9 {
		t.Errorf("asked %q, next %d", asked, w.next)
	}
	if strings.Count(said.String(), "act on b now") != 1 || !strings.Contains(said.String(), "3 passes were too many") {
		t.Errorf("said %q", said.String())
	}
	if !strings.Contains(out.String(), "create x") {
		t.Errorf("printed %q", out.String())
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
