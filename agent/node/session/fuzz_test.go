package session

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/setpoint-io/setpoint/agent/node/session/sessionpb"
)

// FuzzDigest merges whatever a peer may say.
func FuzzDigest(f *testing.F) {
	peer := NewTable("server-2", func(string) {})
	peer.own["n1"] = record{instance: "a", counter: 1, opened: time.Now(), changed: time.Now()}
	seed, err := proto.Marshal(peer.digest(View{Suspended: true, Opinions: []Opinion{{Node: "n1", Dead: true}}}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &sessionpb.Digest{}
		if proto.Unmarshal(data, d) != nil {
			return
		}
		table := NewTable("server-1", func(string) {})
		table.SetServers(Servers{Votes: true, Peers: []Peer{{Name: "server-2", Voter: true}, {Name: d.GetServer(), Voter: true}}})
		if err := table.merge(d); err != nil {
			t.Fatal(err)
		}
		table.sweep(time.Now())
		for node := range table.Entries() {
			table.Node(node)
		}
		table.digest(table.Views()["server-2"])
	})
}
