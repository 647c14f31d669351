package setpoint_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/server/admin"
)

// TestTheClockOfALesson: a cluster in memory has one that can be moved, and its clients may only if it is one to learn on.
func TestTheClockOfALesson(t *testing.T) {
	for name, c := range map[string]struct {
		lessons bool
		by      time.Duration
		code    int // 0: it is done
		why     string
	}{
		"moved":    {true, 5 * time.Minute, 0, ""},
		"back":     {true, -time.Minute, http.StatusBadRequest, "at most 1h"},
		"too far":  {true, admin.AdvanceMax + 1, http.StatusBadRequest, "at most 1h"},
		"no study": {false, time.Minute, http.StatusConflict, "for clusters to learn on"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, APIOnly: true, Lessons: c.lessons})
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Stop()
			if err := cluster.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			config := overASocket(t, cluster)
			ahead := time.Until(cluster.Clock().Now())
			err = admin.OrderLesson(t.Context(), config, admin.LessonOrder{Order: admin.AdvanceLesson, By: c.by})
			refused := (*admin.Refusal)(nil)
			switch {
			case c.code == 0 && err != nil:
				t.Fatal(err)
			case c.code == 0:
				if moved := time.Until(cluster.Clock().Now()) - ahead; moved.Round(time.Second) != c.by {
					t.Errorf("the clock was moved by %v, want %v", moved, c.by)
				}
			case !errors.As(err, &refused) || refused.StatusCode != c.code || !strings.Contains(refused.Reason, c.why):
				t.Errorf("%v, want %d for %q", err, c.code, c.why)
			}
		})
	}
}

// overASocket is the administrator's client of a cluster in memory, as a command has it.
func overASocket(t *testing.T, cluster *setpoint.Cluster) *rest.Config {
	t.Helper()
	kubeconfig, err := cluster.Listen()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}
