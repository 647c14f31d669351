package storage

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// The verbs of Recorded.
const (
	Created = "create"
	Updated = "update"
	Deleted = "delete"
)

// Recorded is one stored change: what, by whom, and because of which object.
type Recorded struct {
	Revision        uint64
	Verb            string
	Resource        schema.GroupResource
	Namespace, Name string
	// UID is that of the object.
	UID string
	// User made the change with FieldManager; CauseUID and CauseRevision name the object that a control loop
	// reacted to, "" if nobody said so.
	User, FieldManager, CauseUID string
	CauseRevision                uint64
}

// RecordedBy describes an event of the store; false: it is about no object.
func RecordedBy(e watch.Event) (Recorded, bool) {
	parts := strings.Split(strings.TrimPrefix(e.Key, "/"), "/")
	if strings.HasPrefix(e.Key, claimsPrefix) || len(parts) < 3 || len(parts) > 4 {
		return Recorded{}, false
	}
	c := Recorded{Revision: e.Revision, Verb: Updated, Name: parts[len(parts)-1]}
	c.Resource = schema.GroupResource{Group: parts[0], Resource: parts[1]}
	if parts[0] == coreGroup {
		c.Resource.Group = ""
	}
	if len(parts) == 4 {
		c.Namespace = parts[2]
	}
	switch {
	case e.Type == watch.Delete:
		c.Verb = Deleted
	case e.Prev == nil:
		c.Verb = Created
	}
	if record := e.Record; record != nil {
		c.UID = record.UID
	} else if e.Prev != nil {
		c.UID = e.Prev.UID
	}
	if o := e.Origin; o != nil {
		c.User, c.FieldManager = o.Actor.User, o.Actor.FieldManager
		c.CauseUID, c.CauseRevision = o.Cause.UID, o.Cause.Revision
	}
	return c, true
}
