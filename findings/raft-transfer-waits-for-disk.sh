#!/usr/bin/env bash
# github.com/hashicorp/raft v1.7.3: a leader whose log store is slow cannot give its leadership away meanwhile.
#
# Guess before: LeadershipTransfer asks a follower that has all entries to stand for election, so it needs nothing of the
# leader's own disk and takes a few milliseconds.
#
# Behaviour: StoreLogs is called in the loop that also takes requests to transfer, to step down and to verify, and that
# looks at the leader's lease (raft.go, leaderLoop and dispatchLogs). While a write takes 3 seconds a transfer that is asked
# for 0.2 s after it began waits for the rest of it. Heartbeats come from other goroutines, so followers see a healthy
# leader all the time and elect nobody: a leader whose disk hangs for good leads for good, and nothing is committed.
#
# So who wants a quick change of leaders has to let the other side begin it, as an election that the followers do not
# refuse, or run the store elsewhere than in StoreLogs.
#
# Output seen on 28 November 2026 with go1.26 (the times vary by some hundredths):
#   transfer with a quick log: under 0.5 s: true
#   transfer beside a write of 3s: over 2.5 s: true
#   meanwhile the followers' state changed: false, and their leader: false
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'EOF'
package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const slow = 3 * time.Second

// store is a log whose writes take as long as it is told.
type store struct {
	*raft.InmemStore
	takes atomic.Int64
}

func (s *store) StoreLogs(logs []*raft.Log) error {
	time.Sleep(time.Duration(s.takes.Load()))
	return s.InmemStore.StoreLogs(logs)
}

func (s *store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

type machine struct{}

func (machine) Apply(*raft.Log) any                 { return nil }
func (machine) Snapshot() (raft.FSMSnapshot, error) { return nil, fmt.Errorf("none") }
func (machine) Restore(from io.ReadCloser) error    { return from.Close() }

type member struct {
	*raft.Raft
	store *store
}

func main() {
	var members []member
	var servers []raft.Server
	var ways []*raft.InmemTransport
	for i := range 3 {
		_, way := raft.NewInmemTransport(raft.ServerAddress(fmt.Sprint("member-", i)))
		ways = append(ways, way)
		servers = append(servers, raft.Server{ID: raft.ServerID(fmt.Sprint(i)), Address: way.LocalAddr()})
	}
	for i, way := range ways {
		for _, other := range ways {
			way.Connect(other.LocalAddr(), other)
		}
		config := raft.DefaultConfig()
		config.LocalID, config.LogOutput = servers[i].ID, io.Discard
		log := &store{InmemStore: raft.NewInmemStore()}
		must(raft.BootstrapCluster(config, log, log.InmemStore, raft.NewInmemSnapshotStore(), way, raft.Configuration{Servers: servers}))
		r, err := raft.NewRaft(config, machine{}, log, log.InmemStore, raft.NewInmemSnapshotStore(), way)
		must(err)
		members = append(members, member{r, log})
	}

	leader := leaderOf(members)
	must(leader.Apply([]byte("x"), 0).Error())
	begun := time.Now()
	must(leader.LeadershipTransfer().Error())
	quick := time.Since(begun)

	leader = leaderOf(members)
	must(leader.Apply([]byte("x"), 0).Error())
	time.Sleep(time.Second) // the followers have it
	leader.store.takes.Store(int64(slow))
	leader.Apply([]byte("y"), 0)
	time.Sleep(200 * time.Millisecond)
	transferred := make(chan time.Duration, 1)
	begun = time.Now()
	go func() {
		_ = leader.LeadershipTransfer().Error()
		transferred <- time.Since(begun)
	}()
	_, id := leader.LeaderWithID()
	stateChanged, leaderChanged := false, false
	var late time.Duration
	for late == 0 {
		select {
		case late = <-transferred:
		case <-time.After(50 * time.Millisecond):
			if time.Since(begun) > slow-time.Second {
				continue // the write is about to end
			}
			for _, m := range members {
				if m.Raft == leader.Raft {
					continue
				}
				_, now := m.LeaderWithID()
				stateChanged = stateChanged || m.State() != raft.Follower
				leaderChanged = leaderChanged || now != id
			}
		}
	}
	fmt.Println("transfer with a quick log: under 0.5 s:", quick < 500*time.Millisecond)
	fmt.Printf("transfer beside a write of %v: over 2.5 s: %v\n", slow, late > 2500*time.Millisecond)
	fmt.Printf("meanwhile the followers' state changed: %v, and their leader: %v\n", stateChanged, leaderChanged)
}

func leaderOf(members []member) member {
	for {
		for _, m := range members {
			if m.State() == raft.Leader && m.VerifyLeader().Error() == nil {
				return m
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
EOF
go mod init finding >/dev/null 2>&1
go get github.com/hashicorp/raft@v1.7.3 >/dev/null 2>&1
go run . | tee output
diff output - <<'EOF'
transfer with a quick log: under 0.5 s: true
transfer beside a write of 3s: over 2.5 s: true
meanwhile the followers' state changed: false, and their leader: false
EOF
