package namespace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

const (
	// kindsAtOnce is how many kinds are looked at in parallel.
	kindsAtOnce = 16
	// pageLimit is how many objects one list of a kind asks for.
	pageLimit = 500
)

// kind is one namespaced kind that may have content.
type kind struct {
	resource         schema.GroupVersionResource
	deleteCollection bool
}

// remains is what an attempt to empty a namespace left.
type remains struct {
	mu         sync.Mutex
	objects    map[string]int // by resource.group
	finalizers map[string]int
	discovery  []string
	content    []string
}

func (r *remains) nothing() bool {
	return len(r.objects) == 0 && len(r.discovery) == 0 && len(r.content) == 0
}

// empty deletes the content of a namespace, pods first, and reports what is
// left after it.
func (c *controller) empty(ctx context.Context, namespace string) *remains {
	left := &remains{objects: map[string]int{}, finalizers: map[string]int{}}
	pods := kind{corev1.SchemeGroupVersion.WithResource("pods"), true}
	c.emptyKind(ctx, namespace, pods, left)
	if !left.nothing() {
		return left
	}
	kinds, err := c.kinds()
	if err != nil {
		left.discovery = append(left.discovery, err.Error())
	}
	slots := make(chan struct{}, kindsAtOnce)
	var wg sync.WaitGroup
	for _, k := range kinds {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			c.emptyKind(ctx, namespace, k, left)
		})
	}
	wg.Wait()
	return left
}

// kinds lists what discovery knows; when it knows only a part, both the part
// and the error are returned.
func (c *controller) kinds() ([]kind, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(c.env.Discovery)
	var out []kind
	for _, list := range lists {
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			err = parseErr
			continue
		}
		for _, r := range list.APIResources {
			if !r.Namespaced || strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") {
				continue
			}
			out = append(out, kind{gv.WithResource(r.Name), slices.Contains(r.Verbs, "deletecollection")})
		}
	}
	return out, err
}

// emptyKind deletes the namespace's objects of one kind and counts what stays.
func (c *controller) emptyKind(ctx context.Context, namespace string, k kind, left *remains) {
	objects := c.env.Metadata.Resource(k.resource).Namespace(namespace)
	before, err := objects.List(ctx, metav1.ListOptions{Limit: pageLimit})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return // the kind went since discovery
	}
	if err == nil && len(before.Items) > 0 {
		err = c.deleteAll(ctx, namespace, k, before.Items)
	}
	if err != nil {
		left.fail(k, err)
		return
	}
	if len(before.Items) == 0 {
		return
	}
	after, err := objects.List(ctx, metav1.ListOptions{Limit: pageLimit})
	if err != nil {
		left.fail(k, err)
		return
	}
	left.count(k, after)
}

// deleteAll deletes in the background: dependents go as content themselves. It
// asks again for objects that are already being deleted only if something new
// has come.
func (c *controller) deleteAll(ctx context.Context, namespace string, k kind, items []metav1.PartialObjectMetadata) error {
	items = slices.DeleteFunc(slices.Clone(items), func(o metav1.PartialObjectMetadata) bool { return o.DeletionTimestamp != nil })
	if len(items) == 0 {
		return nil
	}
	objects := c.env.Metadata.Resource(k.resource).Namespace(namespace)
	background := metav1.DeletePropagationBackground
	if k.deleteCollection {
		err := objects.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
		if !apierrors.IsMethodNotSupported(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, o := range items {
		err := objects.Delete(
			ctx,
			o.Name,
			metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: metav1.NewUIDPreconditions(string(o.UID))},
		)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

func (r *remains) fail(k kind, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.content = append(r.content, fmt.Sprintf("%s: %v", k.resource.GroupResource(), err))
}

func (r *remains) count(k kind, list *metav1.PartialObjectMetadataList) {
	if len(list.Items) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(list.Items)
	if list.RemainingItemCount != nil {
		n += int(*list.RemainingItemCount)
	}
	r.objects[k.resource.GroupResource().String()] = n
	for _, o := range list.Items {
		for _, f := range o.Finalizers {
			r.finalizers[f]++
		}
	}
}
