package trust_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// FuzzToken: what is read as a join token is written as it was.
func FuzzToken(f *testing.F) {
	f.Add("node." + strings.Repeat("ab", 32) + ".secret")
	f.Add("server..")
	f.Add(" node.zz.")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := tokens.Parse(text)
		if err == nil && token.Text() != strings.TrimSpace(text) {
			t.Errorf("%q became %q", text, token.Text())
		}
	})
}

// FuzzServers: servers that are read have names that certificates can bear.
func FuzzServers(f *testing.F) {
	f.Add("a=h:1,b=[::1]:2")
	f.Add("=,")
	f.Fuzz(func(t *testing.T, text string) {
		servers, err := trust.ParseServers(text)
		for _, server := range servers {
			if err == nil && (server.Name == "" || len(server.Names()) == 0) {
				t.Errorf("%q has %+v", text, server)
			}
		}
	})
}

// FuzzGossipKeys: a text of keys is a pool's, and what a ring is told to follow is what it holds then.
func FuzzGossipKeys(f *testing.F) {
	cluster, err := trust.NewCluster(time.Now())
	if err != nil {
		f.Fatal(err)
	}
	seed, err := json.Marshal(cluster.GossipKeys.Told())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(seed))
	f.Add(`{"label":"l","keys":["AA=="]}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = cluster.Copied().GossipKeys.Add([]byte(text))
		var told trust.GossipKeys
		if json.Unmarshal([]byte(text), &told) != nil {
			return
		}
		ring := cluster.Copied().GossipKeys
		if ring.Follow(told) == nil && !slices.Equal(ring.IDs(), told.IDs()) {
			t.Errorf("%q: it holds %v", text, ring.IDs())
		}
	})
}

// FuzzCertificateRequest signs whatever machines ask for, or refuses it.
func FuzzCertificateRequest(f *testing.F) {
	cluster, err := trust.InitCluster(f.TempDir(), nil, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	key, err := trust.NewKey()
	if err != nil {
		f.Fatal(err)
	}
	serving, err := cluster.CA.NodeServing()
	if err != nil {
		f.Fatal(err)
	}
	real, err := trust.NewNodeRequest("n1", key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(real, "n1", "10.0.0.1")
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"), "n1", "10.0.0.1")
	f.Fuzz(func(t *testing.T, request []byte, node, address string) {
		parsed, err := trust.ParseNodeRequest(request, node)
		if err != nil {
			return
		}
		client, err := cluster.CA.SignNode(parsed, time.Now())
		if err != nil {
			return // a key that cannot be certified
		}
		server, err := serving.SignNodeServing(parsed, address, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, signed := range [][]byte{client, server} {
			leaf, err := trust.ParseCertificate(signed)
			if err != nil || leaf.Subject.CommonName != trust.NodeUser(node) || leaf.IsCA {
				t.Errorf("signed %v (%v)", leaf.Subject, err)
			}
		}
	})
}
