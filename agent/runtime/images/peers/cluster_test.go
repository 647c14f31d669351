package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// member is a node of a cluster in a bubble, with a store of one layer.
type member struct {
	client *Client
	life   context.Context // of the node
	hangs  bool            // when it is dead; else it refuses
	denied bool            // the registry does

	mu    sync.Mutex
	state State
}

func (m *member) set(s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = s
}

// onTheWay is how long a question or an answer takes, mostly.
func onTheWay() { time.Sleep(time.Duration(rand.Int64N(int64(20 * roundTrip)))) }

func (m *member) answer(r *http.Request) (*http.Response, error) {
	onTheWay()
	defer onTheWay()
	switch {
	case m.life.Err() != nil && m.hangs:
		return hang(r)
	case m.life.Err() != nil:
		return nil, errors.New("connection refused")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != Here {
		return says(404, m.state, nil)
	}
	if r.Method == http.MethodHead {
		return says(200, Here, nil)
	}
	return says(200, Here, strings.NewReader("layer"))
}

// pull is what the image store does. fetch is how long the registry takes.
func (m *member) pull(fetch time.Duration, fetched *atomic.Int64) {
	ctx, cancel := context.WithTimeout(m.life, time.Hour)
	defer cancel()
	m.set(Wanted)
	for content := range m.client.Layer(ctx, "sha256:a", func(fetching bool) { m.set(map[bool]State{true: Fetching, false: Wanted}[fetching]) }) {
		if got, err := io.ReadAll(content); err == nil && string(got) == "layer" {
			m.set(Here)
			return
		}
	}
	if fetched.Add(1); m.denied {
		m.set(None)
		return
	}
	m.set(Fetching)
	select {
	case <-time.After(fetch):
		m.set(Here)
	case <-ctx.Done():
		m.set(None)
	}
}

// TestClusters: nodes begin at once or one after the other, have different credentials, and die. The registry is asked once, and once more
// for each that fails; nobody waits for longer than all that fail need to be found out.
func TestClusters(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) { playCluster(t, rand.New(rand.NewPCG(seed, 17))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func playCluster(t *testing.T, dice *rand.Rand) {
	const fetch = 20 * time.Second
	w := wire{}
	var all []string
	for i := range 2 + dice.IntN(askedMax) {
		all = append(all, fmt.Sprintf("node-%d:10250", i))
	}
	var fetched atomic.Int64
	var pulls sync.WaitGroup
	began, failing, members := time.Now(), 0, map[string]*member{}
	spread := time.Duration(dice.Int64N(int64(10*roundTrip))) << dice.IntN(12)
	for i, node := range all {
		others := slices.Delete(slices.Clone(all), i, i+1)
		life, die := context.WithCancel(t.Context())
		defer die()
		m := &member{client: newClient(w, node, others...), life: life, hangs: dice.IntN(2) == 0}
		switch dice.IntN(10) {
		case 0:
			m.denied = true
			failing++
		case 1:
			defer time.AfterFunc(time.Duration(dice.Int64N(int64(fetch))), die).Stop()
			failing++
		}
		members[node], w[node] = m, m.answer
	}
	for _, node := range all {
		m, wait := members[node], time.Duration(dice.Int64N(int64(spread)+1))
		pulls.Go(func() {
			time.Sleep(wait)
			m.pull(fetch, &fetched)
		})
	}
	pulls.Wait()
	took := time.Since(began)
	time.Sleep(askTime) // what is asked still ends
	if n := int(fetched.Load()); n > 1+failing || n == 0 {
		t.Errorf("%d nodes, of which %d fail: fetched %d times", len(all), failing, n)
	}
	bound := spread + time.Duration(1+failing)*(fetch+askTime+2*pauseMax)
	if took > bound {
		t.Errorf("took %s of %s", took, bound)
	}
	for node, m := range members {
		if m.state != Here && !m.denied && m.life.Err() == nil {
			t.Errorf("%s: %q", node, m.state)
		}
	}
}
