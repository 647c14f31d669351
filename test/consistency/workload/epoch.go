package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/check"
	"github.com/setpoint-io/setpoint/test/consistency/cluster"
	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// What one epoch is made of.
const (
	ClientsPerKey = 9 // of a group, all on the same keys: two at each of three servers and three anywhere
	OpsPerKey     = 20_000

	groups       = 2
	keysPerGroup = 10
	keyPrefix    = "key-"
	endKey       = "end" // written last
	wholeStreams = 3     // watch everything; each begins at another server
	sideStreams  = 2     // watch one side
	settlePause  = 100 * time.Millisecond
	anywhere     = -1 // a client that has no server of its own
	serversTaken = 3  // how many servers have clients of a group
)

// An Epoch says what to run.
type Epoch struct {
	Cluster   cluster.Cluster
	Clock     history.Clock
	Namespace string
	Kind      Kind // of the objects
	Seed      uint64
	Length    time.Duration
	Rate      int // operations a second; 0: as many as go
	// SettleTimeout bounds how long the begin and the end may each take under faults.
	SettleTimeout time.Duration
}

// epoch is one that runs.
type epoch struct {
	Epoch
	namespace string
	recorder  *history.Recorder
	clock     history.Clock
	clients   atomic.Int64
	slot      atomic.Int64 // when the next operation may begin
	loads     map[string]*atomic.Int64
	start     atomic.Uint64 // revision after which the objects were written
	crowded   atomic.Bool   // a key has OpsPerKey
	end       atomic.Uint64 // revision of endKey, when it is known
}

// Run runs one epoch and returns what happened. It fails if the begin or the end do
// not come about in time: then the cluster is not live. Clients end after Length, or with working.
func (cfg Epoch) Run(ctx, working context.Context) (*history.Epoch, error) {
	e := &epoch{Epoch: cfg, namespace: cfg.Namespace, recorder: &history.Recorder{}, clock: cfg.Clock, loads: map[string]*atomic.Int64{}}
	e.slot.Store(e.clock.Now())
	own := e.newClient(0, anywhere)
	defer own.api.Close()
	start, err := e.begin(ctx, own)
	if err != nil {
		return nil, fmt.Errorf("%s could not begin: %w", e.namespace, err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	whole, side := e.watch(watching, start)
	e.work(working)
	end, err := e.insist(ctx, own, endKey)
	if err == nil {
		e.end.Store(end)
		err = waitFor(ctx, whole, e.SettleTimeout)
	}
	stop()
	whole.Wait()
	side.Wait()
	if err != nil {
		err = fmt.Errorf("%s could not end: %w", e.namespace, err)
	}
	return e.recorder.Epoch(e.namespace, start, end), err
}

// ours says whether the clients of an epoch write an object of this name.
func ours(name string) bool {
	return strings.HasPrefix(name, keyPrefix) || name == endKey || name == check.CounterKey
}

// begin makes the namespace and the counter.
func (e *epoch) begin(ctx context.Context, own *client) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, e.SettleTimeout)
	defer cancel()
	start := uint64(0)
	for start == 0 {
		server := own.random.IntN(e.Cluster.Size())
		namespace := object{Metadata: meta{Name: e.namespace}}
		_, _, err := own.api.do(ctx, server, http.MethodPost, "/api/v1/namespaces", namespace)
		if o, outcome, _ := own.api.do(ctx, server, http.MethodGet, "/api/v1/namespaces/"+e.namespace, nil); outcome == history.OK {
			start = o.revision()
			break
		}
		if wait(ctx, settlePause); ctx.Err() != nil {
			return 0, err
		}
	}
	_, err := e.insist(ctx, own, check.CounterKey)
	e.start.Store(start)
	return start, err
}

// insist creates an object, however often one has to try.
func (e *epoch) insist(ctx context.Context, own *client, key string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, e.SettleTimeout)
	defer cancel()
	for {
		op := own.next()
		op.Key, op.Kind, op.Level, op.Minimum, op.Selector = key, history.Create, history.Newest, 0, ""
		own.perform(ctx, &op)
		e.recorder.Add(op)
		if op.Outcome == history.Exists {
			own.refresh = []string{key}
			op = own.next()
			own.perform(ctx, &op)
			e.recorder.Add(op)
		}
		if own.refresh = nil; op.Outcome == history.OK {
			return op.Revision, nil
		}
		if wait(ctx, settlePause); ctx.Err() != nil {
			return 0, fmt.Errorf("%s of %s at %s: %s", op.Kind, key, cluster.Name(op.Replica), op.Error)
		}
	}
}

func waitFor(ctx context.Context, group *sync.WaitGroup, timeout time.Duration) error {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(timeout):
		return fmt.Errorf("the watchers did not see the last write within %v", timeout)
	}
}

func (e *epoch) newClient(group, home int) *client {
	number := int(e.clients.Add(1))
	c := &client{epoch: e, api: NewAPI(e.Cluster), number: number, group: group, home: home,
		random: rand.New(rand.NewPCG(e.Seed, uint64(number))), known: map[string]history.Item{}}
	for i := range keysPerGroup {
		c.keys = append(c.keys, keyPrefix+strconv.Itoa(group)+"-"+strconv.Itoa(i))
	}
	return c
}

// home is the server of a group's client. Groups begin where the one before has ended, so that all servers have clients.
func home(group, client, servers int) int {
	if client >= 2*serversTaken {
		return anywhere
	}
	return (group*serversTaken + client/2) % servers
}

// work runs all clients for the length of the epoch.
func (e *epoch) work(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Length)
	defer cancel()
	var clients []*client
	for group := range groups {
		for i := range ClientsPerKey {
			clients = append(clients, e.newClient(group, home(group, i, e.Cluster.Size())))
		}
		for _, key := range clients[len(clients)-1].keys {
			e.loads[key] = &atomic.Int64{}
		}
	}
	e.loads[check.CounterKey] = &atomic.Int64{}
	var running sync.WaitGroup
	for _, c := range clients {
		running.Go(func() { c.run(ctx) })
	}
	running.Wait()
}

// load counts an operation on a key.
func (e *epoch) load(key string) {
	if load := e.loads[key]; load != nil && load.Add(1) >= OpsPerKey {
		e.crowded.Store(true)
	}
}

func (e *epoch) full() bool { return e.crowded.Load() }

// pace waits for the next operation's turn; false if there is none any more.
func (e *epoch) pace(ctx context.Context) bool {
	if e.Rate == 0 {
		return true
	}
	turn := e.slot.Add(int64(time.Second) / int64(e.Rate))
	now := e.clock.Now()
	if now-turn > int64(time.Second) {
		e.slot.Store(now) // what was missed under a fault is not made up for
	}
	if turn > now {
		wait(ctx, time.Duration(turn-now))
	}
	return ctx.Err() == nil
}

// watch starts the watchers: those of everything, which end by themselves, and the others.
func (e *epoch) watch(ctx context.Context, start uint64) (whole, side *sync.WaitGroup) {
	whole, side = &sync.WaitGroup{}, &sync.WaitGroup{}
	for i := range wholeStreams + sideStreams {
		name, selector, group := "whole-"+strconv.Itoa(i+1), "", whole
		if i >= wholeStreams {
			name, selector, group = "side-"+strconv.Itoa(i+1-wholeStreams), "a", side
		}
		w := &watcher{epoch: e, api: NewAPI(e.Cluster), server: i % e.Cluster.Size(), seen: start, stream: e.recorder.Stream(name, selector),
			random: rand.New(rand.NewPCG(e.Seed, uint64(1000+i)))}
		group.Go(func() { w.run(ctx) })
	}
	return whole, side
}
