package storage

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/raftstore/command"
)

// unreadableListed bounds how many unreadable objects a failed list names.
const unreadableListed = 100

// unreadable says that this server cannot decrypt a stored object. It is answered with 500.
type unreadable struct {
	*apierrors.StatusError
	key   string
	cause error
}

func newUnreadable(key string, cause error) *unreadable {
	return &unreadable{apierrors.NewInternalError(fmt.Errorf("unable to transform key %q: %w", key, cause)), key, cause}
}

// Unwrap keeps what a plugin said apart from the Status.
func (u *unreadable) Unwrap() error { return u.cause }

// unreadables are what a list could not read. Like upstream's, it fails as a whole then,
// and names them.
type unreadables struct{ all []*unreadable }

// add takes an error that says of one object that it is unreadable, and reports whether
// the list may go on to look for more of them.
func (u *unreadables) add(err error) bool {
	var one *unreadable
	if !errors.As(err, &one) {
		return false
	}
	u.all = append(u.all, one)
	return len(u.all) < unreadableListed
}

// err is nil if everything could be read.
func (u *unreadables) err(gr schema.GroupResource) error {
	if len(u.all) == 0 {
		return nil
	}
	message := fmt.Sprintf("failed to read one or more %s from the storage: %v", gr, u.all[0])
	if more := len(u.all) - 1; more > 0 {
		message = fmt.Sprintf("%s (and %d more)", message, more)
	}
	details := &metav1.StatusDetails{Group: gr.Group, Kind: gr.Resource, Name: "list"}
	for _, one := range u.all {
		details.Causes = append(
			details.Causes,
			metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Field: one.key, Message: one.Error()},
		)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Message: message, Details: details,
	}}
}

// DeleteUnreadable removes an object that cannot be read: its finalizers and preconditions are unknown and
// ignored. An object that can be read is left alone (409).
func (t *Table) DeleteUnreadable(ctx context.Context, namespace, name string, dryRun bool) error {
	root, err := t.store.log.ReadIndex(ctx)
	if err != nil {
		return unavailable(err)
	}
	key := t.key(namespace, name)
	r, ok := root.Get(key)
	if !ok {
		return t.notFound(name)
	}
	if _, err := t.store.codec.decode(t.stored, r); err == nil {
		return apierrors.NewConflict(t.kind.GroupResource(), name,
			errors.New("unsafe deletion is not allowed because the object is decodable from storage"))
	}
	if dryRun {
		return nil
	}
	c := command.Command{Essential: true, Ops: []command.Op{
		{Kind: command.Delete, Key: key, UID: r.UID, Precondition: command.AtRevision, Revision: r.ModRevision},
	}}
	OriginFrom(ctx).stamp(&c)
	result, err := t.store.log.Propose(ctx, c)
	switch {
	case err != nil:
		return unavailable(err)
	case result.Code == command.FenceStale:
		return fenceStale()
	case result.Code != command.OK:
		return apierrors.NewConflict(t.kind.GroupResource(), name, errors.New("the object has been changed meanwhile"))
	}
	return nil
}
