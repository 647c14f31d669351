package storage

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// essentialLog remembers whether the last command was essential.
type essentialLog struct {
	*raftstoretest.Local
	essential bool
}

func (l *essentialLog) Propose(ctx context.Context, c command.Command) (command.Result, error) {
	l.essential = c.Essential
	return l.Local.Propose(ctx, c)
}

// What makes room, and what keeps nodes alive, passes when a disk is nearly full.
func TestWhatPassesWhenADiskIsNearlyFull(t *testing.T) {
	named := metav1.ObjectMeta{Name: "a"}
	going := named
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"example.com/f"}
	nodes, leases := corev1.SchemeGroupVersion.WithResource("nodes"), coordinationv1.SchemeGroupVersion.WithResource("leases")
	log := &essentialLog{Local: raftstoretest.NewLocal(state.Options{})}
	store := New(log, kinds.NewScheme(), kinds.All())
	write := func(table *Table, change Change) {
		t.Helper()
		_, err := table.Write(t.Context(), "", "a", func(*View) (*Change, error) { return &change, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name  string
		table *Table
		obj   resource.Object
		want  bool
	}{
		{"new object", store.Table(configMaps), &corev1.ConfigMap{ObjectMeta: named}, false},
		{"object", store.Table(configMaps), &corev1.ConfigMap{ObjectMeta: named}, false},
		{"object on its way out", store.Table(configMaps), &corev1.ConfigMap{ObjectMeta: going}, true},
		{"deletion", store.Table(configMaps), nil, true},
		{"new lease", store.Table(leases), &coordinationv1.Lease{ObjectMeta: named}, true},
		{"lease", store.Table(leases), &coordinationv1.Lease{ObjectMeta: named}, true},
		{"new node", store.Table(nodes), &corev1.Node{ObjectMeta: named}, false},
		{"node", store.Table(nodes), &corev1.Node{ObjectMeta: named}, true},
	} {
		write(step.table, Change{Object: step.obj, Delete: step.obj == nil})
		if log.essential != step.want {
			t.Errorf("%s: essential %v", step.name, log.essential)
		}
	}
}
