package raftstore_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// heartbeatPause is longer than a new leader's pause between two heartbeats, of which none is held back yet.
const heartbeatPause = 120 * time.Millisecond

// TestAnswersFromBeforeTheReadProveNothing: a leader that was replaced, and does
// not know yet, gets an old answer of its former follower during a read. Raft's
// VerifyLeader takes it for a proof.
func TestAnswersFromBeforeTheReadProveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) {
			cfg.Timing.LeaderLease = 500 * time.Millisecond // time for the test to act in
		})
		defer c.Close()
		old := c.Leader()
		mustPut(t, c.Store(old), "/k", "old")
		time.Sleep(heartbeatPause)
		for _, i := range others(old) {
			c.Hold(i, old)
		}
		time.Sleep(heartbeatPause) // an answer of each follower is on its way now
		replaced := make(chan error, 1)
		go func() { replaced <- c.Store(old).TransferLeadership(t.Context()) }()
		successor := c.Leader(others(old)...)
		mustPut(t, c.Store(successor), "/k", "new")
		if !c.Store(old).Leadership().Leader {
			t.Fatal("the old leader knows already: the test shows nothing")
		}

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		read := make(chan string, 1)
		go func() {
			root, err := c.Store(old).ReadIndex(ctx)
			if err != nil {
				read <- err.Error()
				return
			}
			record, _ := root.Get("/k")
			read <- string(record.Value)
		}()
		synctest.Wait() // until the read waits for answers
		other := 3 - old - successor
		c.Release(other, old)
		synctest.Wait()
		c.Heal()
		if got := <-read; got != "new" {
			t.Errorf("read %q from a leader that was replaced, want %q", got, "new")
		}
		<-replaced
	})
}

// direct calls a server's service for its peers, whatever the network does.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestWhoseWordProvesARead: a leader that is cut off answers a voter which is in its
// term, and nobody else.
func TestWhoseWordProvesARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) {
			cfg.Timing.LeaderLease = 500 * time.Millisecond // time for the test to act in
		})
		defer c.Close()
		leader := c.Leader()
		mustPut(t, c.Store(leader), "/k", "v")
		_, handler := c.Store(leader).Handler()
		client := forward.NewClient(func(string, string) (*http.Client, string) {
			return &http.Client{Transport: direct{handler}}, "http://leader"
		})
		term, voter := c.Store(leader).Leadership().Term, c.Name(others(leader)[0])
		for _, i := range others(leader) {
			c.Isolate(i)
		}
		time.Sleep(heartbeatPause) // what was on its way has arrived
		words := map[forward.Word]bool{
			{ID: voter, Term: term}:          true,
			{ID: voter, Term: term + 1}:      false,
			{ID: voter, Term: term - 1}:      false,
			{ID: "stranger", Term: term}:     false,
			{ID: c.Name(leader), Term: term}: false,
			{}:                               false,
		}
		var asked sync.WaitGroup
		for word, proves := range words {
			asked.Go(func() {
				answer, err := client.ReadIndex(t.Context(), forward.Peer{}, word)
				if (err == nil) != proves {
					t.Errorf("%v: %v, %v", word, answer, err)
				}
			})
		}
		asked.Wait()
	})
}

// TestWordsProveTheLeadersOwnReads: a leader that is cut off answers many readers of its
// own while a voter's words name what it answers, and none when they name nothing.
func TestWordsProveTheLeadersOwnReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readers, while = 16, 50 * time.Millisecond
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) {
			cfg.Timing.LeaderLease = 500 * time.Millisecond // time for the test to act in
		})
		defer c.Close()
		leader := c.Leader()
		mustPut(t, c.Store(leader), "/k", "v")
		ctx, cancel := context.WithCancel(t.Context())
		var children sync.WaitGroup
		defer children.Wait()
		defer cancel()
		var dumb atomic.Bool
		words := forward.Word{ID: c.Name(others(leader)[0]), Term: c.Store(leader).Leadership().Term}
		children.Go(func() { sayWords(ctx, t, c.Store(leader), words, &dumb) })
		var reads atomic.Int64
		for range readers {
			children.Go(func() {
				for ctx.Err() == nil {
					if _, err := c.Store(leader).ReadIndex(ctx); err == nil {
						reads.Add(1)
					}
				}
			})
		}
		time.Sleep(while)
		for _, i := range others(leader) {
			c.Isolate(i)
		}
		time.Sleep(heartbeatPause) // what was on its way has arrived
		reads.Store(0)
		time.Sleep(while)
		if reads.Load() < readers {
			t.Errorf("%d reads are answered on a voter's word", reads.Load())
		}
		dumb.Store(true)
		time.Sleep(while)
		reads.Store(0)
		time.Sleep(while)
		if reads.Load() > 0 {
			t.Errorf("%d reads are answered without a proof", reads.Load())
		}
	})
}

// sayWords has the leader's service hear a follower's words, which name the last answer
// unless they are dumb.
func sayWords(ctx context.Context, t *testing.T, leader *raftstore.Store, word forward.Word, dumb *atomic.Bool) {
	_, handler := leader.Handler()
	client := forward.NewClient(func(string, string) (*http.Client, string) {
		return &http.Client{Transport: direct{handler}}, "http://leader"
	})
	for ctx.Err() == nil {
		answer, err := client.ReadIndex(ctx, forward.Peer{}, word)
		if err != nil && ctx.Err() == nil {
			t.Errorf("%+v: %v", word, err)
		}
		if word.Seen = answer.Round; dumb.Load() {
			word.Seen = 0
		}
		time.Sleep(time.Millisecond)
	}
}

// TestNobodyIsShownLessThanElsewhere: a follower may apply an entry before the leader
// does. Whoever has seen it there waits, on the others, until they have it.
func TestNobodyIsShownLessThanElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := make(chan struct{})
		var isBusy sync.Map // by name
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) {
			cfg.Applying = func(uint64) {
				if _, found := isBusy.Load(cfg.Name); found {
					<-busy
				}
			}
		})
		defer c.Close()
		leader := c.Leader()
		late, early := others(leader)[0], others(leader)[1]
		old := mustPut(t, c.Store(leader), "/k", "old")
		for i := range c.Size() {
			mustRead(t, c.Store(i), "/k")
		}
		for _, i := range []int{leader, late} {
			isBusy.Store(c.Name(i), true)
		}
		var clients sync.WaitGroup
		clients.Go(func() { mustPut(t, c.Store(leader), "/k", "new") })
		if _, err := c.Store(early).WaitRevision(t.Context(), old+1); err != nil {
			t.Fatal(err)
		}
		var idle atomic.Bool
		for _, i := range []int{leader, late} {
			clients.Go(func() {
				if got := mustRead(t, c.Store(i), "/k"); got != "new" || !idle.Load() {
					t.Errorf("server %d read %q, and server %d had shown %q; idle: %v", i, got, early, "new", idle.Load())
				}
			})
		}
		time.Sleep(time.Second)
		idle.Store(true)
		close(busy)
		clients.Wait()
	})
}
