package workload

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/history"
)

const (
	// A watcher moves to the next server after a while, to go on where it was.
	stayMin = time.Second
	stayMax = 5 * time.Second
)

// A watcher watches an epoch's objects, at one server after the other.
type watcher struct {
	*epoch
	api     *API
	stream  *history.Stream
	random  *rand.Rand
	server  int
	seen    uint64 // the revision after which it goes on
	expired int    // servers in a row that do not have that any more
}

// watchEvent is one event as it is sent.
type watchEvent struct {
	Type   history.EventType `json:"type"`
	Object object            `json:"object"`
}

const errorEvent = "ERROR"

var errExpired = errors.New("the revision is too old")

func (w *watcher) run(ctx context.Context) {
	defer w.api.Close()
	for ctx.Err() == nil && !w.finished() {
		began := time.Now()
		w.stay(ctx)
		w.server = (w.server + 1) % w.Cluster.Size()
		if time.Since(began) < settlePause {
			wait(ctx, settlePause)
		}
	}
}

// finished says whether all has been seen. Watchers of one side end when they are told.
func (w *watcher) finished() bool {
	end := w.end.Load()
	return end != 0 && w.seen >= end && w.stream.Selector == ""
}

// stay watches at one server until it is time to move.
func (w *watcher) stay(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stayMin+time.Duration(w.random.Int64N(int64(stayMax-stayMin))))
	defer cancel()
	err := w.watch(ctx)
	if !errors.Is(err, errExpired) {
		return // moved, or cut off: both end as well as begin anywhere
	}
	if w.expired++; w.expired < w.Cluster.Size() {
		return
	}
	w.relist(ctx)
}

// relist begins anew where the servers' memory does not reach back.
func (w *watcher) relist(ctx context.Context) {
	o, outcome, _ := w.api.do(ctx, w.server, http.MethodGet, w.Kind.path(w.namespace)+"?limit=1", nil)
	if outcome != history.OK {
		return
	}
	w.note(history.Expired, history.Item{Revision: w.seen})
	w.seen, w.expired = o.revision(), 0
}

func (w *watcher) note(kind history.EventType, item history.Item) {
	w.stream.Events = append(w.stream.Events, history.Event{Type: kind, Replica: w.server, At: w.clock.Now(), Item: item})
}

func (w *watcher) watch(ctx context.Context) error {
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"1"}, "resourceVersion": {strconv.FormatUint(w.seen, 10)}}
	if w.stream.Selector != "" {
		query.Set("labelSelector", sideLabel+"="+w.stream.Selector)
	}
	response, err := w.api.send(ctx, w.server, http.MethodGet, w.Kind.path(w.namespace)+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusGone:
		return errExpired
	default:
		return errors.New(response.Status)
	}
	w.note(history.Started, history.Item{Revision: w.seen})
	for decoder := json.NewDecoder(response.Body); !w.finished(); {
		var event watchEvent
		if err := decoder.Decode(&event); err != nil {
			return err
		}
		if err := w.take(&event); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) take(event *watchEvent) error {
	if event.Type == errorEvent {
		if event.Object.Code == http.StatusGone {
			return errExpired
		}
		return errors.New(event.Object.Message)
	}
	item := event.Object.item()
	w.expired = 0
	w.seen = max(w.seen, item.Revision)
	if event.Type == history.Bookmark || !ours(item.Key) {
		// Other people's objects say as much as a bookmark: what is before them has come.
		event.Type, item = history.Bookmark, history.Item{Revision: item.Revision}
	}
	w.note(event.Type, item)
	return nil
}
