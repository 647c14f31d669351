package revoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/internal/revocation"
)

// ConflictsMax is how often the list may be changed by others meanwhile.
const ConflictsMax = 20

// ErrConflicts says that the list was changed by others all the time.
var ErrConflicts = errors.New("others change the list of what is revoked all the time: try again")

// Entry is one line of the list, as it is printed.
type Entry struct {
	Target string    `json:"target"`
	Key    string    `json:"key,omitempty"`
	At     time.Time `json:"at"`
}

// Result is what became of an order.
type Result struct {
	Entry
	// Revoked says whether it is shut out now, Changed whether it was otherwise before.
	Revoked bool `json:"revoked"`
	Changed bool `json:"changed"`
}

func entryOf(e revocation.Entry) Entry { return Entry{e.Kind + "/" + e.Name, e.Key, e.At} }

// List is what is revoked, in the order of names.
func List(ctx context.Context, client kubernetes.Interface) ([]Entry, error) {
	list, _, err := get(ctx, client)
	if err != nil {
		return nil, err
	}
	known, err := revocation.Read(list.Data)
	entries := make([]Entry, len(known))
	for i, e := range known {
		entries[i] = entryOf(e)
	}
	return entries, err
}

// Change revokes a target, or undoes it.
func Change(ctx context.Context, client kubernetes.Interface, target revocation.Target, undo bool, now time.Time) (Result, error) {
	for range ConflictsMax {
		result, err := change(ctx, client, revocation.Entry{Target: target, At: now}, undo)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return result, err
		}
	}
	return Result{}, ErrConflicts
}

func change(ctx context.Context, client kubernetes.Interface, entry revocation.Entry, undo bool) (Result, error) {
	list, exists, err := get(ctx, client)
	if err != nil {
		return Result{}, err
	}
	key := entry.DataKey()
	text, there := list.Data[key]
	if there == !undo {
		result := Result{Entry: entryOf(entry), Revoked: there}
		if known, err := revocation.Read(map[string]string{key: text}); err == nil && len(known) == 1 {
			result.Entry = entryOf(known[0])
		}
		return result, nil
	}
	if undo {
		delete(list.Data, key)
	} else if list.Data == nil {
		list.Data = map[string]string{key: entry.Text()}
	} else {
		list.Data[key] = entry.Text()
	}
	return Result{Entry: entryOf(entry), Revoked: !undo, Changed: true}, put(ctx, client, list, exists)
}

// get is an empty list if there is none yet.
func get(ctx context.Context, client kubernetes.Interface) (list *corev1.ConfigMap, exists bool, err error) {
	list, err = client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, revocation.ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: revocation.ConfigMapName, Namespace: metav1.NamespaceSystem}}, false, nil
	}
	return list, true, err
}

func put(ctx context.Context, client kubernetes.Interface, list *corev1.ConfigMap, exists bool) (err error) {
	lists := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	switch {
	case len(list.Data) > revocation.EntriesMax:
		return revocation.ErrFull
	case exists:
		_, err = lists.Update(ctx, list, metav1.UpdateOptions{})
	default:
		_, err = lists.Create(ctx, list, metav1.CreateOptions{})
	}
	return err
}

// Line says what became of an order.
func (r Result) Line() string {
	name := r.Target
	if r.Key != "" {
		name += " with the key " + r.Key
	}
	switch {
	case r.Revoked && !r.Changed:
		return fmt.Sprintf("%s was revoked already, on %s", name, r.At.UTC().Format(time.RFC3339))
	case r.Revoked:
		return name + " is revoked"
	case !r.Changed:
		return name + " is not revoked"
	}
	return name + " is no longer revoked"
}
