package join

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestGossipKeysOfNewcomers: in the middle of a rotation all keys of one moment come with the label of the pool; an older server sends the
// key in use alone, and an older agent finds that where it always was.
func TestGossipKeysOfNewcomers(t *testing.T) {
	cluster, err := trust.NewCluster(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, id, err := trust.MakeGossipKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.GossipKeys.Add(text); err != nil {
		t.Fatal(err)
	}
	if err := cluster.GossipKeys.Use(id); err != nil {
		t.Fatal(err)
	}
	keyPEM, err := trust.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	requestPEM, err := trust.NewNodeRequest("a", keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	request, err := trust.ParseNodeRequest(requestPEM, "a")
	if err != nil {
		t.Fatal(err)
	}
	h := &handler{config: HandlerConfig{Authority: cluster.CA, Serving: cluster.CA, GossipKeys: cluster.GossipKeys.Told}}
	sent, err := h.sign(request, "")
	if err != nil {
		t.Fatal(err)
	}
	wire, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	want, answer := cluster.GossipKeys.Told(), response{}
	if err := json.Unmarshal(wire, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.GossipKey != base64.StdEncoding.EncodeToString(want.Keys[0]) {
		t.Error("an older agent gets a key that is not in use")
	}
	node, err := accept(answer, keyPEM, []string{cluster.CA.Pin()}, time.Now())
	if err != nil || !cmp.Equal(node.GossipKeys.Told(), want) {
		t.Errorf("it holds other keys: %v", err)
	}
	answer.GossipKeys = nil
	node, err = accept(answer, keyPEM, []string{cluster.CA.Pin()}, time.Now())
	if err != nil || !cmp.Equal(node.GossipKeys.Told(), trust.FirstGossipKey(want.Keys[0])) {
		t.Errorf("of an older server: %v", err)
	}
	answer.GossipKeys = &trust.GossipKeys{Label: "x"}
	if _, err := accept(answer, keyPEM, []string{cluster.CA.Pin()}, time.Now()); err == nil {
		t.Error("no key at all is accepted")
	}
}
