package storage

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// cutOff is a replica that does not get through to the others, if it is cut.
type cutOff struct {
	*raftstoretest.Local
	cut bool
}

func (c *cutOff) ReadIndex(ctx context.Context) (*state.Root, error) {
	if c.cut {
		return nil, raftstore.ErrNoLeader
	}
	return c.Local.ReadIndex(ctx)
}

func writeConfigMap(t *testing.T, table *Table, value string) (resourceVersion string) {
	t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "u"}, Data: map[string]string{"a": value}}
	if _, err := table.Write(t.Context(), "n", "c", func(*View) (*Change, error) { return &Change{Object: o}, nil }); err != nil {
		t.Fatal(err)
	}
	return formatRevision(table.store.Revision())
}

// TestPastWithoutTheOthers: a replica that does not know what was purged meanwhile answers no read of the past, not even of what it takes for
// the present.
func TestPastWithoutTheOthers(t *testing.T) {
	log := &cutOff{Local: raftstoretest.NewLocal(state.Options{})}
	table := New(log, kinds.NewScheme(), kinds.All()).Table(configMaps)
	revisions := []string{writeConfigMap(t, table, "1"), writeConfigMap(t, table, "2")}
	for _, cut := range []bool{false, true} {
		log.cut = cut
		for _, revision := range revisions {
			_, err := table.Get(Exactly(t.Context()), "n", "c", revision)
			if cut != apierrors.IsServiceUnavailable(err) || !cut && err != nil {
				t.Errorf("cut off %v: GET at %s: %v", cut, revision, err)
			}
			list := ListOptions{Selection: Selection{Namespace: "n"}, ResourceVersion: revision, Match: metav1.ResourceVersionMatchExact}
			if _, err = table.List(t.Context(), list); cut != apierrors.IsServiceUnavailable(err) || !cut && err != nil {
				t.Errorf("cut off %v: LIST at %s: %v", cut, revision, err)
			}
		}
	}
}

// TestPurgeWaitsForAllServers: one of an older release would keep the values.
func TestPurgeWaitsForAllServers(t *testing.T) {
	log := raftstoretest.NewLocal(state.Options{})
	table := New(log, kinds.NewScheme(), kinds.All()).Table(configMaps)
	writeConfigMap(t, table, "1")
	before := log.Root().Revision
	if _, err := table.Purge(t.Context(), "n", "c"); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "upgrade them all") {
		t.Errorf("%v", err)
	}
	if log.Root().Revision != before {
		t.Error("it is written")
	}
	raiseTo(t, log, raftstore.PurgesLevel)
	if at, err := table.Purge(t.Context(), "n", "c"); err != nil || at != log.Root().Revision {
		t.Errorf("%d %v", at, err)
	}
}

func raiseTo(t *testing.T, log *raftstoretest.Local, level uint64) {
	t.Helper()
	if _, err := log.Propose(t.Context(), command.Command{Ops: []command.Op{{Kind: command.SetFeatureLevel, Revision: level}}}); err != nil {
		t.Fatal(err)
	}
}

// emptyHistory has a value that was purged.
type emptyHistory struct {
	History
	now *state.Root
}

func (h emptyHistory) At(_ context.Context, prefix string, revision uint64) (*state.Root, error) {
	key := resourcePrefix(schema.GroupResource{Resource: "configmaps"}) + "n/c"
	return h.now.Undone(revision, prefix, map[string]*state.Record{key: {Key: key, UID: "u", ModRevision: revision}}), nil
}

// TestPurgedAndForgotten: the purge is no longer kept, and what it emptied is: that is told, and is no fault of the store.
func TestPurgedAndForgotten(t *testing.T) {
	log := raftstoretest.NewLocal(state.Options{RingBytes: 1})
	store := New(log, kinds.NewScheme(), kinds.All())
	table := store.Table(configMaps)
	first := writeConfigMap(t, table, "1")
	writeConfigMap(t, table, "between")
	writeConfigMap(t, table, "2")
	store.KeepHistory(emptyHistory{now: log.Root()})
	if _, err := table.Get(Exactly(t.Context()), "n", "c", first); !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "was purged") {
		t.Errorf("GET: %v", err)
	}
	list := ListOptions{Selection: Selection{Namespace: "n"}, ResourceVersion: first, Match: metav1.ResourceVersionMatchExact}
	if _, err := table.List(t.Context(), list); !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "was purged") {
		t.Errorf("LIST: %v", err)
	}
}
