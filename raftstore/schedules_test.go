package raftstore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// Nights play more: go test ./raftstore -run TestSchedules -schedules 1000. A seed
// repeats the schedule, not the run: raft's own timers are not seeded.
var (
	schedules     = flag.Int("schedules", 10, "how many seeded schedules of faults are played")
	firstSchedule = flag.Uint64("schedule", 0, "the first seed")
)

const (
	// scheduleLength is how long one schedule torments the servers, in fake time.
	scheduleLength = 150 * time.Second
	registerKeys   = 4
	scheduleWriter = 5
	// checkerLimit bounds the judgement of one history, in real time.
	checkerLimit = time.Minute
)

// TestSchedules checks that registers stay linearizable while servers are cut off,
// lose power, restart, hand over, take snapshots, join and leave.
func TestSchedules(t *testing.T) {
	count := *schedules
	if testing.Short() {
		count = 1
	}
	for i := range count {
		seed := *firstSchedule + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := &registers{}
			synctest.Test(t, func(t *testing.T) { r.play(t, seed) })
			r.judge(t, seed)
		})
	}
}

// registers are a few keys, and all that clients did to them.
type registers struct {
	// clock orders calls and returns as they happened, also at one instant.
	clock atomic.Int64

	mu           sync.Mutex
	operations   []porcupine.Operation
	acknowledged int
}

type registerOp struct {
	key string
	// kind is "read", "write", or "swap" if the register still holds expected.
	kind, expected, value string
}

// answer is a read's value, or whether a swap took place.
type answer struct {
	value            string
	swapped, unknown bool
}

func (r *registers) play(t *testing.T, seed uint64) {
	c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) { cfg.Timing.SnapshotBytes = 40_000 })
	defer c.Close()
	c.Leader()
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for id := range scheduleWriter {
		random := rand.New(rand.NewPCG(seed, uint64(id+1)))
		clients.Go(func() { r.client(ctx, c, id, random) })
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for end := time.Now().Add(scheduleLength); time.Now().Before(end); {
		torment(c, random, time.Now().Add(10*time.Second))
		bridge(c, random)
	}
	c.Heal()
	time.Sleep(5 * time.Second)
	cancel()
	clients.Wait()
	for i := range c.Size() {
		if _, err := c.Store(i).ReadIndex(t.Context()); err != nil {
			t.Errorf("seed %d: server %d does not serve after the faults: %v", seed, i, err)
		}
	}
	if a, b, z := c.StateHash(0), c.StateHash(1), c.StateHash(2); a != b || b != z {
		t.Errorf("seed %d: replicas differ: %x %x %x", seed, a, b, z)
	}
}

// bridge cuts two servers off from each other; the third sees both.
func bridge(c *raftstoretest.Cluster, random *rand.Rand) {
	i := random.IntN(c.Size())
	j := (i + 1) % c.Size()
	c.Cut(i, j)
	c.Cut(j, i)
	time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
	c.Heal()
}

func (r *registers) client(ctx context.Context, c *raftstoretest.Cluster, id int, random *rand.Rand) {
	known := map[string]string{}
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(time.Duration(100+random.IntN(400)) * time.Millisecond)
		s := c.Store(random.IntN(c.Size()))
		if s == nil {
			continue
		}
		op := registerOp{key: fmt.Sprint("/r/", random.IntN(registerKeys)), kind: "read", value: fmt.Sprintf("%d-%d", id, n)}
		switch random.IntN(4) {
		case 0:
			op.kind = "write"
		case 1:
			op.kind, op.expected = "swap", known[op.key]
		}
		r.do(ctx, s, id, op, known)
	}
}

// do performs one operation and writes it down, unless it surely had no effect.
func (r *registers) do(ctx context.Context, s *raftstore.Store, id int, op registerOp, known map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	call := r.clock.Add(1)
	done, err := perform(ctx, s, op)
	back := r.clock.Add(1)
	switch {
	case errors.Is(err, raftstore.ErrOutcomeUnknown):
		done.unknown, back = true, math.MaxInt64
	case err != nil:
		return
	case op.kind == "read":
		known[op.key] = done.value
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, porcupine.Operation{ClientId: id, Input: op, Call: call, Output: done, Return: back})
	if err == nil {
		r.acknowledged++
	}
}

func perform(ctx context.Context, s *raftstore.Store, op registerOp) (answer, error) {
	c := put(op.key, op.value)
	// Values carry some weight, so that snapshots are taken.
	c.Ops[0].Value = []byte(op.value + strings.Repeat(" ", 200))
	if op.kind != "write" {
		root, err := s.ReadIndex(ctx)
		if err != nil {
			return answer{}, err
		}
		found, value := c.Ops[0], ""
		found.Precondition = command.Absent
		if record, ok := root.Get(op.key); ok {
			value = strings.TrimSpace(string(record.Value))
			found.Precondition, found.Revision = command.AtRevision, record.ModRevision
		}
		if op.kind == "read" || value != op.expected {
			return answer{value: value}, nil
		}
		c.Ops[0] = found
	}
	result, err := s.Propose(ctx, c)
	return answer{swapped: err == nil && result.Code == command.OK}, err
}

// registerModel is one register: porcupine asks it whether an order is possible.
var registerModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range all {
			key := op.Input.(registerOp).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		op, done := input.(registerOp), output.(answer)
		switch {
		case op.kind == "read":
			return done.value == state, state
		case op.kind == "write":
			return true, op.value
		case done.swapped:
			return state == op.expected, op.value
		case done.unknown && state == op.expected:
			return true, op.value
		case done.unknown:
			return true, state
		}
		return state != op.expected, state
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

func (r *registers) judge(t *testing.T, seed uint64) {
	t.Helper()
	if r.acknowledged < 500 {
		t.Errorf("seed %d: too little happened: %d operations", seed, r.acknowledged)
	}
	if verdict := porcupine.CheckOperationsTimeout(registerModel, r.operations, checkerLimit); verdict != porcupine.Ok {
		for _, op := range r.operations {
			t.Logf("client %d from %d to %d: %s", op.ClientId, op.Call, op.Return, registerModel.DescribeOperation(op.Input, op.Output))
		}
		t.Errorf("seed %d: the history is %s", seed, verdict)
	}
	t.Logf("seed %d: %d operations, %d acknowledged", seed, len(r.operations), r.acknowledged)
}
