package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

func TestRecordedBy(t *testing.T) {
	origin := &command.Origin{Actor: command.Actor{User: "u", FieldManager: "m"}, Cause: command.Cause{UID: "c", Revision: 4}}
	was, is := &record.Record{UID: "a"}, &record.Record{UID: "b"}
	for name, tc := range map[string]struct {
		event watch.Event
		want  Recorded
		ok    bool
	}{
		"created": {
			watch.Event{Type: watch.Put, Revision: 5, Key: "/core/pods/n/p", Record: is, Origin: origin},
			Recorded{Revision: 5, Verb: Created, Resource: schema.GroupResource{Resource: "pods"}, Namespace: "n", Name: "p", UID: "b", User: "u", FieldManager: "m", CauseUID: "c", CauseRevision: 4}, true,
		},
		"updated": {
			watch.Event{Type: watch.Put, Key: "/apps/deployments/n/d", Record: is, Prev: was},
			Recorded{Verb: Updated, Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Namespace: "n", Name: "d", UID: "b"}, true,
		},
		"deleted, cluster-scoped": {
			watch.Event{Type: watch.Delete, Key: "/core/nodes/n", Prev: was},
			Recorded{Verb: Deleted, Resource: schema.GroupResource{Resource: "nodes"}, Name: "n", UID: "a"}, true,
		},
		"a claim": {watch.Event{Key: ClaimKey("ips", "10.0.0.1")}, Recorded{}, false},
		"no key":  {watch.Event{Key: "/x"}, Recorded{}, false},
	} {
		got, ok := RecordedBy(tc.event)
		if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
			t.Errorf("%s: %v %s", name, ok, diff)
		}
	}
}
