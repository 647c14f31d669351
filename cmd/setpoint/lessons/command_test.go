package lessons

import (
	"bytes"
	"context"
	"encoding/json"
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

// run runs a command that asks the servers one after the other, as the binary does.
func run(t *testing.T, servers []string, args ...string) (string, error) {
	t.Helper()
	shell := &Shell{
		Finish:    func(cmd *cobra.Command) *cobra.Command { return cmd },
		Escaped:   func(w io.Writer) io.Writer { return w },
		Mistake:   func(err error) error { return err },
		Namespace: func(string) (string, error) { return "of-the-context", nil },
		AskServers: func(ctx context.Context, _ string, _ time.Duration, ask func(context.Context, *rest.Config) error) (err error) {
			for _, server := range servers {
				if err = ask(ctx, &rest.Config{Host: server}); admin.IsFinal(err) {
					break
				}
			}
			return err
		},
	}
	root, out := &cobra.Command{Use: "dev", SilenceErrors: true, SilenceUsage: true}, &bytes.Buffer{}
	root.AddCommand(shell.Commands()...)
	root.SetOut(out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// obeying is a server that does what it is told, and what it was told.
func obeying(t *testing.T) (url string, orders *[]admin.LessonOrder) {
	t.Helper()
	orders = &[]admin.LessonOrder{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var order admin.LessonOrder
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			t.Error(err)
		}
		*orders = append(*orders, order)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	return server.URL, orders
}

// TestTimePassesOnce: after a request without an answer no other server is asked to move the clock. A server may be asked to kill something
// that another has killed.
func TestTimePassesOnce(t *testing.T) {
	hangsUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangsUp.Close()
	absent := httptest.NewServer(http.NotFoundHandler())
	absent.Close()
	for name, c := range map[string]struct {
		first string
		args  []string
		asked int
	}{
		"no answer":             {hangsUp.URL, []string{"advance", "5m"}, 0},
		"nobody there":          {absent.URL, []string{"advance", "5m"}, 1},
		"no answer, of a death": {hangsUp.URL, []string{"kill", "node", "n"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			second, orders := obeying(t)
			out, err := run(t, []string{c.first, second}, c.args...)
			if len(*orders) != c.asked {
				t.Errorf("the other server was asked: %v", *orders)
			}
			if unknown := errors.Is(err, admin.ErrAdvanceUnknown); unknown != (c.asked == 0) || (err == nil) != (out != "") {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}

// TestWhichPod: one without a namespace is in the flag's, or else in that of the kubeconfig's context.
func TestWhichPod(t *testing.T) {
	for args, want := range map[string]string{
		"kill pod web": "of-the-context/web", "heal pod web -n shop": "shop/web", "kill pod shop/web": "shop/web",
		"kill pod shop/web -n shop": "shop/web", "kill pod shop/web -n other": "", "kill node web -n shop": "web", "heal server web": "web",
	} {
		t.Run(args, func(t *testing.T) {
			url, orders := obeying(t)
			out, err := run(t, []string{url}, strings.Fields(args)...)
			switch {
			case want == "" && !errors.Is(err, errNamespace):
				t.Errorf("%q, %v", out, err)
			case want != "" && (err != nil || len(*orders) != 1 || (*orders)[0].Name != want || !strings.Contains(out, " "+want+" ")):
				t.Errorf("%v, %q, %v, want %q", *orders, out, err, want)
			}
		})
	}
}
