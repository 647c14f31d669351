package apiserver

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// contended is a log in which somebody always changes an object a moment before it is deleted.
type contended struct{ *raftstoretest.Local }

func (l contended) Propose(ctx context.Context, c command.Command) (command.Result, error) {
	for _, op := range c.Ops {
		if record, found := l.Root().Get(op.Key); found && op.Kind == command.Delete && strings.Contains(op.Key, "/p") {
			touch := command.Command{Ops: []command.Op{{Kind: command.Put, Key: op.Key, UID: record.UID, Value: record.Value}}}
			if result, err := l.Local.Propose(ctx, touch); err != nil || result.Code != command.OK {
				return result, err
			}
		}
	}
	return l.Local.Propose(ctx, c)
}

// deposed is a log whose leader loses its leadership a moment before an object is deleted.
type deposed struct{ *raftstoretest.Local }

func (l deposed) Propose(ctx context.Context, c command.Command) (command.Result, error) {
	if slices.ContainsFunc(c.Ops, func(op command.Op) bool { return op.Kind == command.Delete && strings.Contains(op.Key, "/p") }) {
		return command.Result{Code: command.FenceStale}, nil
	}
	return l.Local.Propose(ctx, c)
}

// TestADeletionThatGivesUpSaysSo: a pod that has been marked to end at once, and is there still, is not said to be gone.
func TestADeletionThatGivesUpSaysSo(t *testing.T) {
	calls := map[string]call{
		"deleted":     {method: "DELETE", path: podPath + "/p"},
		"evicted":     {method: "POST", path: podPath + "/p/eviction", body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`},
		"with others": {method: "DELETE", path: podPath},
	}
	for why, test := range map[string]struct {
		log  func(*raftstoretest.Local) storage.Log
		want refusal
	}{
		"contended": {func(l *raftstoretest.Local) storage.Log { return contended{l} }, refusal{code: 429, reason: metav1.StatusReasonTooManyRequests}},
		"deposed":   {func(l *raftstoretest.Local) storage.Log { return deposed{l} }, refusal{code: 409, reason: metav1.StatusReasonConflict}},
	} {
		for how, c := range calls {
			t.Run(why+" "+how, func(t *testing.T) {
				server, _ := newServerWith(t, test.log(raftstoretest.NewLocal(state.Options{})))
				mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
				got := c.do(t, server)
				pod := mustDo[corev1.Pod](t, server, call{path: podPath + "/p"})
				if pod.DeletionTimestamp == nil {
					t.Errorf("it is not marked: %+v", pod.ObjectMeta)
				}
				test.want.check(t, how, got)
			})
		}
	}
}
