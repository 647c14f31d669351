package transport

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

const peerID = raft.ServerID("b")

// heard is a transport that has heard a peer acknowledge these requests.
func heard(requests ...*raft.AppendEntriesRequest) *Transport {
	t := &Transport{contacts: map[raft.ServerID]time.Time{}, accepted: map[raft.ServerID]acceptance{}, peers: map[raft.ServerID]*progress{}}
	for _, r := range requests {
		t.answered(peerID, time.Now(), r, &raft.AppendEntriesResponse{Success: true})
	}
	return t
}

func entries(term, commit uint64, indexes ...uint64) *raft.AppendEntriesRequest {
	r := &raft.AppendEntriesRequest{Term: term, PrevLogEntry: indexes[0] - 1, LeaderCommitIndex: commit}
	for _, index := range indexes {
		r.Entries = append(r.Entries, &raft.Log{Index: index, Term: term})
	}
	return r
}

func TestWhoIsToldOfACommit(t *testing.T) {
	heartbeat := &raft.AppendEntriesRequest{Term: 3}
	empty := &raft.AppendEntriesRequest{Term: 3, PrevLogEntry: 9, LeaderCommitIndex: 7}
	for name, c := range map[string]struct {
		heard        []*raft.AppendEntriesRequest
		begin, ready bool
	}{
		"has it":                        {[]*raft.AppendEntriesRequest{entries(3, 7, 8, 9)}, true, true},
		"has it, by an empty message":   {[]*raft.AppendEntriesRequest{empty}, true, true},
		"does not have it yet":          {[]*raft.AppendEntriesRequest{entries(3, 7, 8)}, true, false},
		"knows":                         {[]*raft.AppendEntriesRequest{entries(3, 7, 8, 9), entries(3, 9, 10)}, false, false},
		"knew more before":              {[]*raft.AppendEntriesRequest{entries(3, 9, 10), entries(3, 7, 8)}, false, false},
		"answered heartbeats only":      {[]*raft.AppendEntriesRequest{heartbeat}, true, false},
		"answered nothing":              {nil, false, false},
		"had it in an earlier term":     {[]*raft.AppendEntriesRequest{entries(2, 7, 8, 9)}, false, false},
		"had it earlier, not in this":   {[]*raft.AppendEntriesRequest{entries(2, 7, 8, 9), heartbeat}, true, false},
		"answers late of a term before": {[]*raft.AppendEntriesRequest{heartbeat, entries(2, 9, 8, 9)}, true, false},
		"follows a later term's leader": {[]*raft.AppendEntriesRequest{entries(3, 7, 8, 9), entries(4, 7, 10)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			transport := heard(c.heard...)
			if begin := transport.BeginTelling(peerID, 3, 9); begin != c.begin {
				t.Fatalf("BeginTelling = %v", begin)
			}
			if !c.begin {
				return
			}
			if transport.BeginTelling(peerID, 3, 9) {
				t.Error("told twice at once")
			}
			told := &raft.AppendEntriesRequest{Term: 3, PrevLogEntry: 9, LeaderCommitIndex: 9}
			ready, changed := transport.mayTell(peerID, told)
			if ready != c.ready || !ready && changed == nil {
				t.Fatalf("mayTell = %v, %v", ready, changed)
			}
			if !ready {
				transport.answered(peerID, time.Now(), entries(3, 7, 8, 9), &raft.AppendEntriesResponse{Success: true})
				<-changed
			}
			if ready, _ = transport.mayTell(peerID, told); !ready {
				t.Error("not told although it has the log")
			}
			transport.endTelling(peerID)
			if !transport.BeginTelling(peerID, 3, 9) {
				t.Error("nobody tells it again")
			}
		})
	}
}

// TestTheHighestTermHeard: refusals count, and late answers of earlier terms change nothing.
func TestTheHighestTermHeard(t *testing.T) {
	transport := heard(entries(3, 7, 8, 9))
	for _, answer := range []struct{ term, want uint64 }{{3, 3}, {5, 5}, {4, 5}} {
		transport.answered(peerID, time.Now(), entries(3, 9, 10), &raft.AppendEntriesResponse{Term: answer.term})
		if got := transport.TermHeard(); got != answer.want {
			t.Errorf("after an answer of term %d: %d, want %d", answer.term, got, answer.want)
		}
	}
}
