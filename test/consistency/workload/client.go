package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/check"
	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// The mix of operations, in per cent of all; what remains are reads of the newest.
const (
	writePercent   = 45
	countPercent   = 5 // raise the counter
	listPercent    = 5
	anyPercent     = 5 // reads with resourceVersion=0
	atLeastPercent = 4
	deletePercent  = 20 // of writes to an object that is there
	exactPercent   = 30 // of lists: those of a moment in the past
	pageSize       = 5
	// pastMax is how many revisions a list of the past reaches back at most: more than most servers have in memory by then.
	pastMax = 5000
	// refusedPause is how long a client waits before it asks again a server that did not take its request.
	refusedPause = 50 * time.Millisecond
)

// A client does one operation after the other, mostly at its own server.
type client struct {
	*epoch
	api    *API
	random *rand.Rand
	number int
	group  int
	home   int // server; anywhere: any
	keys   []string
	known  map[string]history.Item // what it last saw; Revision 0: nothing is there
	newest uint64                  // the newest revision it saw
	// refresh are keys to read before they are written again.
	refresh []string
	done    int
}

func (c *client) run(ctx context.Context) {
	defer c.api.Close()
	for ctx.Err() == nil && !c.full() {
		if !c.pace(ctx) {
			return
		}
		op := c.next()
		// An operation that has begun is finished: its outcome is better known.
		c.perform(context.WithoutCancel(ctx), &op)
		c.recorder.Add(op)
		switch op.Outcome {
		case history.Refused:
			wait(ctx, refusedPause)
		case history.Unknown:
			c.number = int(c.clients.Add(1)) // whoever lost an answer is somebody else afterwards
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// next chooses an operation.
func (c *client) next() history.Op {
	c.done++
	op := history.Op{Client: c.number, Replica: c.home, Kind: history.Get, ID: fmt.Sprintf("%s-%d-%d", c.namespace, c.number, c.done)}
	if c.home == anywhere {
		op.Replica = c.random.IntN(c.Cluster.Size())
	}
	op.Key = c.keys[c.random.IntN(len(c.keys))]
	dice := c.random.IntN(100)
	switch last := len(c.refresh) - 1; {
	case last >= 0:
		op.Key, c.refresh = c.refresh[last], c.refresh[:last]
	case dice < writePercent:
		c.chooseWrite(&op)
	case dice < writePercent+countPercent:
		c.chooseCount(&op)
	case dice < writePercent+countPercent+listPercent:
		op.Key, op.Kind = "", history.List
		op.Selector = []string{"", "a"}[c.random.IntN(2)]
		c.chooseMoment(&op)
	case dice < writePercent+countPercent+listPercent+anyPercent:
		op.Level = history.Any
	case dice < writePercent+countPercent+listPercent+anyPercent+atLeastPercent && c.newest > 0:
		op.Level, op.Minimum = history.AtLeast, c.newest
	}
	c.load(op.Key)
	return op
}

func (c *client) chooseWrite(op *history.Op) {
	switch known := c.known[op.Key]; {
	case known.Revision == 0:
		op.Kind = history.Create
	case c.random.IntN(100) < deletePercent:
		op.Kind = history.Delete
	default:
		op.Kind = history.Update
	}
}

// chooseMoment makes some lists ask for what was at one revision of the epoch.
func (c *client) chooseMoment(op *history.Op) {
	start := c.start.Load()
	if c.random.IntN(100) >= exactPercent || c.newest <= start {
		return
	}
	op.Level = history.Exact
	op.Expect = c.newest - c.random.Uint64N(min(c.newest-start, pastMax))
}

// chooseCount raises the counter of the first group, or reads it before.
func (c *client) chooseCount(op *history.Op) {
	if c.group != 0 {
		return
	}
	if op.Key = check.CounterKey; c.known[op.Key].Revision != 0 {
		op.Kind = history.Update
	}
}

// perform sends it and fills in what came of it.
func (c *client) perform(ctx context.Context, op *history.Op) {
	var o *object
	var err error
	known := c.known[op.Key]
	base := c.Kind.path(c.namespace)
	item := history.Item{Key: op.Key, Value: op.ID, Side: []string{"a", "b"}[c.random.IntN(2)]}
	op.Call = c.clock.Now()
	switch op.Kind {
	case history.List:
		op.Outcome, err = c.list(ctx, op)
	case history.Create:
		o, op.Outcome, err = c.api.do(ctx, op.Replica, http.MethodPost, base, manifest(item))
	case history.Update:
		op.Expect, op.UID = known.Revision, known.UID
		item.Revision, item.UID = known.Revision, known.UID
		if op.Key == check.CounterKey {
			item.Count = known.Count + 1
		}
		o, op.Outcome, err = c.api.do(ctx, op.Replica, http.MethodPut, base+"/"+op.Key, manifest(item))
	case history.Delete:
		op.Expect, op.UID = known.Revision, known.UID
		o, op.Outcome, err = c.api.do(ctx, op.Replica, http.MethodDelete, base+"/"+op.Key, preconditions(known))
	default:
		o, op.Outcome, err = c.api.do(ctx, op.Replica, http.MethodGet, base+"/"+op.Key+level(op), nil)
	}
	op.Return = c.clock.Now()
	if err != nil {
		op.Error = err.Error()
	}
	c.learn(op, o)
}

func level(op *history.Op) string {
	switch op.Level {
	case history.Any:
		return "?resourceVersion=0"
	case history.AtLeast:
		return "?resourceVersion=" + strconv.FormatUint(op.Minimum, 10)
	default:
		return ""
	}
}

func preconditions(known history.Item) any {
	return map[string]any{"kind": "DeleteOptions", "apiVersion": "v1",
		"preconditions": map[string]string{"uid": known.UID, "resourceVersion": strconv.FormatUint(known.Revision, 10)}}
}

// learn notes what an answer shows.
func (c *client) learn(op *history.Op, o *object) {
	switch {
	case op.Outcome == history.Absent, op.Outcome == history.OK && op.Kind == history.Delete:
		delete(c.known, op.Key)
	case op.Outcome == history.Exists || op.Outcome == history.Conflict || op.Outcome == history.Unknown && op.Writes():
		c.refresh = append(c.refresh, op.Key)
	case op.Outcome == history.OK && op.Kind != history.List:
		item := o.item()
		op.Revision, op.UID, op.Value, op.Count = item.Revision, item.UID, item.Value, item.Count
		c.known[op.Key] = item
	}
	if op.Outcome == history.OK && op.Level != history.Exact {
		c.newest = max(c.newest, op.Revision)
	}
}

// list reads all pages, each from another server, which must continue the same cut.
func (c *client) list(ctx context.Context, op *history.Op) (history.Outcome, error) {
	query := url.Values{}
	if op.Selector != "" {
		query.Set("labelSelector", sideLabel+"="+op.Selector)
	}
	if op.Level == history.Exact {
		query.Set("resourceVersion", strconv.FormatUint(op.Expect, 10))
		query.Set("resourceVersionMatch", "Exact")
	}
	if c.random.IntN(2) == 0 {
		query.Set("limit", strconv.Itoa(pageSize))
	}
	server := op.Replica
	for {
		o, outcome, err := c.api.do(ctx, server, http.MethodGet, c.Kind.path(c.namespace)+"?"+query.Encode(), nil)
		if outcome != history.OK {
			return history.Refused, err // part of a list says nothing
		}
		if op.Revision = o.revision(); op.Pages == 0 {
			op.Minimum = op.Revision
		} else if op.Minimum != op.Revision {
			return history.OK, fmt.Errorf("page %d is at %d, page 1 at %d", op.Pages+1, op.Revision, op.Minimum)
		}
		if op.Level == history.Exact && op.Revision != op.Expect {
			return history.OK, fmt.Errorf("page %d is at %d, asked for was %d", op.Pages+1, op.Revision, op.Expect)
		}
		op.Pages++
		for _, object := range o.Items {
			if ours(object.Metadata.Name) {
				op.Items = append(op.Items, object.item())
			}
		}
		if o.Metadata.Continue == "" {
			op.Minimum = 0
			return history.OK, nil
		}
		query.Set("continue", o.Metadata.Continue)
		query.Del("resourceVersion")
		query.Del("resourceVersionMatch")
		server = (server + 1) % c.Cluster.Size()
	}
}
