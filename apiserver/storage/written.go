package storage

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// Written is one change that the watch history still holds.
type Written struct {
	Resource        schema.GroupResource
	Namespace, Name string
	UID             string
	// Created and Deleted tell what the change did; neither: it changed the object.
	Created, Deleted bool
	// Before is the revision of the object as it was before; 0 if Created.
	Before uint64
	// Origin says who made the change and because of which other one. It has no Fence.
	Origin Origin
}

// WrittenAt returns the change that made a revision; false if it left the watch history and history, or is not of an object.
func (s *Store) WrittenAt(revision uint64) (Written, bool) {
	event, ok := s.eventAt(context.Background(), revision)
	if !ok {
		return Written{}, false
	}
	gr, ok := resourceOf(event.Key)
	if !ok {
		return Written{}, false
	}
	w := Written{Resource: gr, Created: event.Prev == nil, Deleted: event.Type == watch.Delete}
	w.Namespace, w.Name = nameOf(event.Key)
	if event.Prev != nil {
		w.Before = event.Prev.ModRevision
	}
	if w.Deleted {
		w.UID = event.Prev.UID
	} else {
		w.UID = event.Record.UID
	}
	if o := event.Origin; o != nil {
		w.Origin = Origin{
			User: o.Actor.User, FieldManager: o.Actor.FieldManager, RequestID: o.RequestID, CauseUID: o.Cause.UID, CauseRevision: o.Cause.Revision,
		}
	}
	return w, true
}

// nameOf returns the last parts of an object's key: see keys.go.
func nameOf(key string) (namespace, name string) {
	parts := strings.SplitN(strings.TrimPrefix(key, "/"), "/", 4)
	if len(parts) == 4 {
		return parts[2], parts[3]
	}
	return "", parts[len(parts)-1]
}
