package storage

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// leaderlessLog has no leader once led has ended.
type leaderlessLog struct {
	*raftstoretest.Local
	led context.Context
}

func (l *leaderlessLog) Led() context.Context { return l.led }

// TestClientsWatchesEndWithTheLeader: a server that has none would tell of no change, for ever. What this server
// follows for itself goes on.
func TestClientsWatchesEndWithTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		led, lose := context.WithCancelCause(t.Context())
		log := &leaderlessLog{raftstoretest.NewLocal(state.Options{}), led}
		table := New(log, kinds.NewScheme(), kinds.All()).Table(configMaps)
		clients := startWatch(t, t.Context(), table, WatchOptions{Led: true, Bookmarks: true})
		own := startWatch(t, t.Context(), table, WatchOptions{})
		time.Sleep(time.Hour)
		waiting(clients) // bookmarks
		lose(raftstore.ErrNoLeader)
		synctest.Wait()
		var last watch.Event
		for event := range clients.ResultChan() {
			last = event
		}
		if last.Type != watch.Error {
			t.Fatalf("the watch ends with %+v", last)
		}
		wantNoLeader(t, apierrors.FromObject(last.Object))
		if got := waiting(own); len(got) > 0 {
			t.Errorf("the server's own watch: %v", got)
		}
		_, err := table.Watch(t.Context(), WatchOptions{Led: true, ResourceVersion: "1"})
		wantNoLeader(t, err)
		log.led = t.Context()
		startWatch(t, t.Context(), table, WatchOptions{Led: true})
	})
}

func wantNoLeader(t *testing.T, err error) {
	t.Helper()
	seconds, retry := apierrors.SuggestsClientDelay(err)
	if !apierrors.IsServiceUnavailable(err) || !retry || seconds != 1 || !apierrors.HasStatusCause(err, CauseNoLeader) {
		t.Errorf("%#v", err)
	}
	if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != http.StatusServiceUnavailable || status.Status().Status != metav1.StatusFailure {
		t.Errorf("no status: %v", err)
	}
}
