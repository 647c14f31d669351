package replicas

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

const (
	clientCount, watcherCount = 5, 2
	// keyCount is how many keys there are; prefix is that of all.
	keyCount = 4
	prefix   = "/r/"
	// callLimit bounds one call of a client.
	callLimit = 3 * time.Second
	// padBytes makes values heavy enough for snapshots.
	padBytes = 300
)

// client calls one server after the other, one call at a time.
type client struct {
	world  *World
	number int
	random *rand.Rand
	ctx    context.Context
	stop   context.CancelFunc
	// known are the revisions of what it read.
	known map[string]uint64
}

func (w *World) startClients() {
	for i := range clientCount + watcherCount {
		c := &client{world: w, number: i, random: rand.New(rand.NewPCG(w.plan.Seed, uint64(100+i))), known: map[string]uint64{}}
		c.ctx, c.stop = context.WithCancel(w.ctx)
		w.clients = append(w.clients, c)
		if i < clientCount {
			w.task(c.work)
		} else {
			w.task(c.watch)
		}
	}
}

// rest sleeps for a random time.
func (c *client) rest(least, most time.Duration) {
	select {
	case <-time.After(least + time.Duration(c.random.Int64N(int64(most-least)))):
	case <-c.ctx.Done():
	}
}

func (c *client) anyStore() *raftstore.Store {
	s := c.world.servers[c.random.IntN(len(c.world.servers))]
	if s == c.world.avoided.Load() {
		return nil
	}
	return s.running()
}

func (c *client) work() {
	for n := 0; c.ctx.Err() == nil; n++ {
		c.rest(5*time.Millisecond, 150*time.Millisecond)
		s := c.anyStore()
		if s == nil {
			continue
		}
		key := fmt.Sprint(prefix, c.random.IntN(keyCount))
		ctx, cancel := context.WithTimeout(c.ctx, callLimit)
		if c.random.IntN(3) == 0 {
			c.read(ctx, s, key)
		} else {
			c.write(ctx, s, key, fmt.Sprintf("%d-%d", c.number, n))
		}
		cancel()
	}
}

// one is one command of a crowd.
func (w *World) one(s *raftstore.Store, number int) {
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	value := fmt.Sprint("crowd-", number)
	c := client{world: w, number: clientCount + watcherCount, known: map[string]uint64{}}
	c.random = rand.New(rand.NewPCG(w.plan.Seed, uint64(1000+number)))
	c.write(ctx, s, fmt.Sprint(prefix, "crowd/", number%100), value)
}

func (c *client) read(ctx context.Context, s *raftstore.Store, key string) {
	j := c.world.judge
	floor := j.floor()
	root, err := s.ReadIndex(ctx)
	if err != nil {
		return
	}
	r := readDone{client: c.number, floor: floor, key: key, revision: root.Revision}
	if record, ok := root.Get(key); ok {
		r.value = strings.TrimSpace(string(record.Value))
		c.known[key] = record.ModRevision
	}
	j.read(r)
}

func (c *client) write(ctx context.Context, s *raftstore.Store, key, value string) {
	op := command.Op{Kind: command.Put, Key: key, Value: []byte(value + strings.Repeat(" ", padBytes))}
	if strings.HasPrefix(value, "crowd") {
		op.Value = []byte(value)
	}
	if known := c.known[key]; known > 0 && c.random.IntN(3) == 0 {
		op.Precondition, op.Revision = command.AtRevision, known
	}
	j := c.world.judge
	floor := j.floor()
	result, err := s.Propose(ctx, command.Command{RequestID: value, Ops: []command.Op{op}})
	switch {
	case err == nil && result.Code == command.OK:
		c.known[key] = result.Revision
		j.wrote(writeDone{client: c.number, floor: floor, key: key, value: value, revision: result.Revision})
	case err == nil:
		delete(c.known, key)
		j.never(value, result.Code)
	case errors.Is(err, raftstore.ErrOutcomeUnknown):
		j.unknown()
	default:
		j.never(value, err)
	}
}

// watch follows all keys, on one server after the other.
func (c *client) watch() {
	var seen uint64
	for c.ctx.Err() == nil {
		c.rest(10*time.Millisecond, 300*time.Millisecond)
		s := c.anyStore()
		if s == nil || s.Root().Revision < seen {
			continue
		}
		seen = c.follow(s, seen)
	}
}

// follow watches a server for a while and returns the last revision seen.
func (c *client) follow(s *raftstore.Store, seen uint64) uint64 {
	w, err := s.Watch(prefix, seen)
	if errors.Is(err, watch.ErrCompacted) {
		root := s.Root()
		c.world.judge.skipped(c.number, root.Revision)
		return root.Revision
	}
	if err != nil {
		return seen
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(c.ctx, time.Duration(500+c.random.IntN(4000))*time.Millisecond)
	defer cancel()
	for {
		found, err := w.Next(ctx)
		if err != nil {
			return seen
		}
		for _, e := range found {
			c.world.judge.saw(c.number, e)
			seen = e.Revision
		}
	}
}
