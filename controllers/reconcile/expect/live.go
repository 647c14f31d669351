package expect

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Lister lists pods of a namespace from the API, such as the namespace's client.
type Lister interface {
	List(ctx context.Context, opts metav1.ListOptions) (*corev1.PodList, error)
}

// Live is what to do when Check says that the API has to be asked: it lists the pods that owner controls. They replace
// what was expected, and until the cache shows each of them, Check says that it lags behind. cached are
// the owner's pods in the cache; it is called after the list.
func (e *Expectations) Live(
	ctx context.Context, api Lister, owner metav1.Object, selector labels.Selector, cached func() ([]*corev1.Pod, error), now time.Time,
) ([]*corev1.Pod, error) {
	list, err := api.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], owner) {
			pods = append(pods, &list.Items[i])
		}
	}
	e.list(owner.GetUID(), pods, now)
	shown, err := cached()
	if err != nil {
		return nil, err
	}
	for _, p := range shown {
		e.shown(owner.GetUID(), p.UID)
	}
	return pods, nil
}

// list replaces what is expected of an owner by what the API has.
func (e *Expectations) list(owner types.UID, pods []*corev1.Pod, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.set, owner)
	x := e.at(owner)
	x.since = now
	for _, p := range pods {
		x.awaited[p.UID] = true
	}
}

// shown notes that the cache has a child, or had it.
func (e *Expectations) shown(owner, child types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.set[owner]
	if x == nil {
		return
	}
	if x.sent > 0 {
		x.early[child] = true
	}
	delete(x.awaited, child)
}
