package liveness

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/internal/trust"
)

func TestTally(t *testing.T) {
	dead := session.View{Opinions: []session.Opinion{{Node: "n1", Dead: true}}}
	alive := session.View{Opinions: []session.Opinion{{Node: "n1"}}}
	doubtful := session.View{Opinions: dead.Opinions, Suspended: true}
	blind := session.View{}
	for _, c := range []struct {
		name      string
		views     []session.View
		servers   int
		suspended bool
		want      nodelifecycle.GossipState
	}{
		{"nobody knows it", []session.View{blind, blind}, 3, false, nodelifecycle.GossipNotMember},
		{"one of three", []session.View{dead, alive, alive}, 3, false, nodelifecycle.GossipAlive},
		{"two of three", []session.View{dead, dead, alive}, 3, false, nodelifecycle.GossipDead},
		{"two of three, one silent", []session.View{dead, dead}, 3, false, nodelifecycle.GossipDead},
		{"one of three, two silent", []session.View{dead}, 3, false, nodelifecycle.GossipAlive},
		{"a doubtful vote", []session.View{dead, doubtful, alive}, 3, false, nodelifecycle.GossipAlive},
		{"the judge doubts itself", []session.View{dead, dead, dead}, 3, true, nodelifecycle.GossipAlive},
		{"the only server", []session.View{dead}, 1, false, nodelifecycle.GossipDead},
		{"one of two", []session.View{dead, alive}, 2, false, nodelifecycle.GossipAlive},
	} {
		t.Run(c.name, func(t *testing.T) {
			views := map[string]session.View{}
			for i, v := range c.views {
				views[fmt.Sprint("s", i)] = v
			}
			if got := tally(views, c.servers, c.suspended)["n1"]; got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestDistrusts(t *testing.T) {
	now := time.Unix(1000, 0)
	members := func(alive, dead int) []gossip.Member {
		all := []gossip.Member{{Role: gossip.RoleServer, State: gossip.Alive}} // itself
		for range alive {
			all = append(all, gossip.Member{State: gossip.Alive})
		}
		for range dead {
			all = append(all, gossip.Member{State: gossip.Dead})
		}
		return append(all, gossip.Member{State: gossip.NotMember})
	}
	sessions := func(alive, lost int, ago time.Duration) map[string]session.Entry {
		all := map[string]session.Entry{}
		for i := range alive {
			all[fmt.Sprint("a", i)] = session.Entry{State: session.Alive}
		}
		for i := range lost {
			all[fmt.Sprint("l", i)] = session.Entry{State: session.Lost, Since: now.Add(-ago)}
		}
		return all
	}
	for _, c := range []struct {
		name     string
		members  []gossip.Member
		sessions map[string]session.Entry
		want     bool
	}{
		{"alone", members(0, 0), nil, false},
		{"all well", members(5, 0), sessions(3, 0, 0), false},
		{"one agent of three gone", members(4, 1), sessions(2, 1, time.Second), false},
		{"a server and two agents of three gone", members(2, 3), sessions(1, 2, time.Second), true},
		{"it sees nobody", members(0, 5), nil, true},
		{"the only agent is gone", members(0, 1), sessions(0, 1, time.Second), true},
		{"all agents gone at once", members(3, 3), sessions(0, 3, time.Second), true},
		{"a fifth of the sessions", members(100, 0), sessions(80, 20, time.Second), false},
		{"more than a fifth", members(100, 0), sessions(79, 21, time.Second), true},
		{"long ago", members(100, 0), sessions(79, 21, time.Minute), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := distrusts(c.members, c.sessions, now); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestLivenessFollowsTheLog: a server that joined later is a peer and counts, one that was removed does not.
func TestLivenessFollowsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var voters atomic.Pointer[[]string]
		voters.Store(&[]string{"s1", "s2"})
		l := &Liveness{
			table: session.NewTable("s1", nil),
			reach: func(_, address string) (*http.Client, string) { return nil, "https://" + address },
			config: Config{Name: "s1", Members: func() (members []Server) {
				for _, name := range *voters.Load() {
					members = append(members, Server{Server: trust.Server{Name: name}, Voter: true})
				}
				return append(members, Server{Server: trust.Server{Name: "learner"}})
			}},
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = l.follow(ctx) }()
		for _, next := range [][]string{{"s1", "s2"}, {"s1", "s2", "s3"}, {"s2", "s3", "s4", "s5"}} {
			synctest.Wait()
			voters.Store(&next)
			time.Sleep(membersInterval)
			synctest.Wait()
			if l.table.Voters() != len(next) || l.table.Votes() != slices.Contains(next, "s1") {
				t.Errorf("%v: %d voters, this one %v", next, l.table.Voters(), l.table.Votes())
			}
		}
	})
}

func TestAdopt(t *testing.T) {
	l := &Liveness{table: session.NewTable("s1", nil), feed: newFeed(), gossip: map[string]gossipVerdict{}}
	first, second, third := time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0)
	l.adopt(map[string]nodelifecycle.GossipState{"n1": nodelifecycle.GossipAlive, "n2": nodelifecycle.GossipAlive}, first)
	l.adopt(map[string]nodelifecycle.GossipState{"n1": nodelifecycle.GossipDead, "n2": nodelifecycle.GossipAlive}, second)
	l.feed.take()
	l.adopt(map[string]nodelifecycle.GossipState{"n1": nodelifecycle.GossipDead}, third)
	if diff := cmp.Diff(map[string]struct{}{"n2": {}}, l.feed.take()); diff != "" {
		t.Error("changed:", diff)
	}
	want := nodelifecycle.Signal{Gossip: nodelifecycle.GossipDead, GossipSince: second}
	if diff := cmp.Diff(want, l.Node("n1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(nodelifecycle.Signal{}, l.Node("n2")); diff != "" {
		t.Error("a member that left:", diff)
	}
}
