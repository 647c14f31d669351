package storage

import (
	"context"
	"net/http"
	"sync/atomic"
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
	led atomic.Pointer[context.Context]
}

func (l *leaderlessLog) Led() context.Context { return *l.led.Load() }

// electionTime is how long reads wait for a leader.
const electionTime = 4 * time.Second

// ReadIndex waits for a leader, in vain unless it is led by then.
func (l *leaderlessLog) ReadIndex(ctx context.Context) (*state.Root, error) {
	if l.Led().Err() == nil {
		return l.Local.ReadIndex(ctx)
	}
	time.Sleep(electionTime)
	return l.Local.Root(), context.Cause(l.Led())
}

// TestClientsWatchesEndWithTheLeader: a server that has none would tell of no change, for ever. What this server
// follows for itself goes on.
func TestClientsWatchesEndWithTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		led, lose := context.WithCancelCause(t.Context())
		log := &leaderlessLog{Local: raftstoretest.NewLocal(state.Options{})}
		log.led.Store(&led)
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
		time.AfterFunc(electionTime/2, func() { log.led.Store(new(t.Context())) })
		began := startWatch(t, t.Context(), table, WatchOptions{Led: true, ResourceVersion: "1"})
		if got := waiting(began); len(got) > 0 {
			t.Errorf("one that waited for the leader: %v", got)
		}
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

// glimpsedLog has a leader for the first read alone, which has waited for it as long as reads do.
type glimpsedLog struct {
	*leaderlessLog
	seen atomic.Bool
}

func (l *glimpsedLog) ReadIndex(ctx context.Context) (*state.Root, error) {
	if l.seen.Swap(true) {
		return l.leaderlessLog.ReadIndex(ctx)
	}
	time.Sleep(electionTime)
	return l.Local.ReadIndex(ctx)
}

// TestAWatchWaitsForALeaderOnce when it begins, whatever it begins with.
func TestAWatchWaitsForALeaderOnce(t *testing.T) {
	for what, options := range map[string]WatchOptions{
		"from now": {Led: true}, "a list": {Led: true, SendInitialEvents: new(true)}, "from what is here": {Led: true, ResourceVersion: "0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			led, lose := context.WithCancelCause(t.Context())
			lose(raftstore.ErrNoLeader)
			log := &glimpsedLog{leaderlessLog: &leaderlessLog{Local: raftstoretest.NewLocal(state.Options{})}}
			log.led.Store(&led)
			table := New(log, kinds.NewScheme(), kinds.All()).Table(configMaps)
			began := time.Now()
			w, err := table.Watch(t.Context(), options)
			if err != nil || time.Since(began) != electionTime {
				t.Fatalf("%s: after %s: %v", what, time.Since(began), err)
			}
			w.Stop()
		})
	}
}
