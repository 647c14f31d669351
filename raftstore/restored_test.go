package raftstore

import (
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/founded"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// TestWhoFoundsAndWhoWaits is about server-1 of three, long after its start.
func TestWhoFoundsAndWhoWaits(t *testing.T) {
	fresh := replica.Beginning{Phase: replica.Fresh, Nonce: "n1"}
	withData := replica.Beginning{Phase: replica.Restored, Nonce: "n1", Life: "l", Backup: "b"}
	without := replica.Beginning{Phase: replica.Restored, Nonce: "n1", Backup: "b"}
	peer := func(phase replica.Phase, change func(*forward.Status)) forward.Status {
		s := forward.Status{Phase: string(phase), Nonce: "n"}
		if change != nil {
			change(&s)
		}
		return s
	}
	freshPeer := peer(replica.Fresh, nil)
	takesPart := peer(replica.Restored, func(s *forward.Status) { s.Backup = "b" })
	otherBackup := peer(replica.Restored, func(s *forward.Status) { s.Backup = "c" })
	alsoWithData := peer(replica.Restored, func(s *forward.Status) { s.Backup, s.Life = "b", "m" })
	survivor := peer(replica.Held, nil)
	led := peer(replica.Held, func(s *forward.Status) { s.Leader = "server-2" })
	counts := func(nonce string) forward.Status {
		return peer(replica.Held, func(s *forward.Status) { s.Life, s.Founders = "l", map[string]string{"server-1": nonce} })
	}
	for name, c := range map[string]struct {
		own  replica.Beginning
		two  forward.Status
		want act
		life string
	}{
		"fresh, with another":                    {fresh, freshPeer, found, ""},
		"fresh, beside a cluster":                {fresh, led, rejoin, ""},
		"fresh, beside a survivor":               {fresh, survivor, wait, ""},
		"fresh, beside one restored":             {fresh, takesPart, wait, ""},
		"fresh, beside one with restored data":   {fresh, alsoWithData, wait, ""},
		"fresh, counted":                         {fresh, counts("n1"), found, "l"},
		"fresh, its former directory counted":    {fresh, counts("n0"), wait, ""},
		"restored, with a fresh one":             {withData, freshPeer, found, "l"},
		"restored, with one of the same backup":  {withData, takesPart, found, "l"},
		"restored, with one of another backup":   {withData, otherBackup, wait, ""},
		"restored, beside one with data too":     {withData, alsoWithData, wait, ""},
		"restored, beside a cluster":             {withData, led, wait, ""},
		"restored, beside a survivor":            {withData, survivor, wait, ""},
		"takes part, counted":                    {without, counts("n1"), found, "l"},
		"takes part, its former restore counted": {without, counts("n0"), wait, ""},
		"takes part, before the data are there":  {without, takesPart, wait, ""},
		"takes part, with a fresh one":           {without, freshPeer, wait, ""},
		"takes part, later than a majority":      {without, led, rejoin, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Name: "server-1", InitialServers: []Server{{ID: "server-1"}, {ID: "server-2"}, {ID: "server-3"}}}
			peers := map[string]forward.Status{"server-2": c.two}
			if c.own.Phase == replica.Fresh && c.want == wait {
				peers["server-3"] = freshPeer // with it they were a majority
			}
			v := judge(c.own, cfg, founded.Open(nil), peers, time.Hour)
			if v.act != c.want || v.life != c.life {
				t.Errorf("judged %+v, want act %d, life %q", v, c.want, c.life)
			}
		})
	}
}
