package undelete

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	shell "github.com/setpoint-io/setpoint/cmd/setpoint/past"
	"github.com/setpoint-io/setpoint/server/past"
)

const (
	// atOnce is how many requests are under way, pageSize how many objects one page has.
	atOnce   = 16
	pageSize = 500
)

// cluster is what is asked and told: as it is, and as it was.
type cluster struct {
	now, then dynamic.Interface
	access    authorization.SelfSubjectAccessReviewInterface
	kinds     []kind
}

// kind is what can be listed and created.
type kind struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
}

// open reads what kinds there are. The clients do not limit themselves: the servers do.
func open(config *rest.Config) (*cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	now, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	reviews, err := authorization.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	about, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(about)
	if err != nil {
		return nil, fmt.Errorf("which kinds there are: %w", err)
	}
	return &cluster{now: now, access: reviews.SelfSubjectAccessReviews(), kinds: kindsOf(groups)}, nil
}

// kindsOf are all kinds that can be listed and created, each in its group's preferred version if it is there.
func kindsOf(groups []*restmapper.APIGroupResources) (kinds []kind) {
	for _, group := range groups {
		versions := []string{group.Group.PreferredVersion.Version}
		for _, version := range group.Group.Versions {
			versions = append(versions, version.Version)
		}
		known := map[string]bool{}
		for _, version := range versions {
			for i := range group.VersionedResources[version] {
				r := &group.VersionedResources[version][i]
				if known[r.Name] || strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "create") {
					continue
				}
				known[r.Name] = true
				gvr := schema.GroupVersionResource{Group: group.Group.Name, Version: version, Resource: r.Name}
				kinds = append(kinds, kind{gvr, r.Kind, r.Namespaced})
			}
		}
	}
	return kinds
}

// goTo has then be the time of a revision.
func (c *cluster) goTo(config *rest.Config, revision uint64) (err error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // what was is only read: that a kind is deprecated helps nobody here
	config.Wrap(shell.Exactly(revision))
	c.then, err = dynamic.NewForConfig(config)
	return err
}

func (c *cluster) kindOf(gr schema.GroupResource) (kind, bool) {
	i := slices.IndexFunc(c.kinds, func(k kind) bool { return k.GroupResource() == gr })
	if i < 0 {
		return kind{}, false
	}
	return c.kinds[i], true
}

// in is where objects of a kind are.
func in(from dynamic.Interface, k schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return from.Resource(k)
	}
	return from.Resource(k).Namespace(namespace)
}

// contents are all objects that were in a namespace.
func (c *cluster) contents(ctx context.Context, namespace string) ([]*part, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	lists := make([][]*part, len(c.kinds))
	for i, k := range c.kinds {
		if !k.namespaced || slices.Contains(transient, k.GroupResource()) {
			continue
		}
		group.Go(func() (err error) {
			lists[i], err = c.list(ctx, k, namespace)
			return err
		})
	}
	err := group.Wait()
	return slices.Concat(lists...), err
}

func (c *cluster) list(ctx context.Context, k kind, namespace string) (parts []*part, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.then.Resource(k.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("the %s of that time: %w", k.GroupResource(), err)
		}
		for i := range page.Items {
			parts = append(parts, partOf(k, &page.Items[i]))
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return parts, nil
		}
	}
}

func partOf(k kind, object *unstructured.Unstructured) *part {
	return &part{resource: k.GroupVersionResource, object: object, uid: object.GetUID()}
}

// worldOf looks for the volumes and owners that are not among the parts.
func (c *cluster) worldOf(ctx context.Context, parts []*part) (world, error) {
	w := world{volumes: map[string]bool{}, owners: map[types.UID]types.UID{}}
	inside := map[types.UID]bool{}
	for _, p := range parts {
		inside[p.uid] = true
	}
	var mutex sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, p := range parts {
		group.Go(func() error {
			volume, err := c.volumeOf(ctx, p)
			if err != nil {
				return err
			}
			mutex.Lock()
			w.volumes[volume] = true
			mutex.Unlock()
			for _, owner := range p.object.GetOwnerReferences() {
				if inside[owner.UID] {
					continue
				}
				now, err := c.ownerNow(ctx, p, owner)
				if err != nil {
					return err
				}
				mutex.Lock()
				w.owners[owner.UID] = now
				mutex.Unlock()
			}
			return nil
		})
	}
	err := group.Wait()
	delete(w.volumes, "")
	return w, err
}

var volumes = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}

// volumeOf is the volume of a claim if it is still there and is kept for the claim; "" otherwise.
func (c *cluster) volumeOf(ctx context.Context, p *part) (string, error) {
	name, _, _ := unstructured.NestedString(p.object.Object, "spec", "volumeName")
	if !isClaim(p) || name == "" {
		return "", nil
	}
	volume, err := c.now.Resource(volumes).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if volume.GetDeletionTimestamp() != nil || !isFor(volume, p) {
		return "", nil
	}
	return name, nil
}

// isFor tells whether a volume is kept for a claim, or for none.
func isFor(volume *unstructured.Unstructured, p *part) bool {
	claim, bound, _ := unstructured.NestedMap(volume.Object, "spec", "claimRef")
	uid, _ := claim["uid"].(string)
	ours := claim["namespace"] == p.object.GetNamespace() && claim["name"] == p.object.GetName()
	return !bound || ours && (uid == "" || uid == string(p.uid))
}

// ownerNow is the uid that an owner has now: its own, or that of the one which has its name by now; "" without one.
func (c *cluster) ownerNow(ctx context.Context, p *part, owner metav1.OwnerReference) (types.UID, error) {
	group, _ := schema.ParseGroupVersion(owner.APIVersion)
	i := slices.IndexFunc(c.kinds, func(k kind) bool { return k.Group == group.Group && k.kind == owner.Kind })
	if i < 0 {
		return "", nil
	}
	namespace := ""
	if c.kinds[i].namespaced {
		namespace = p.object.GetNamespace()
	}
	object, err := in(c.now, c.kinds[i].GroupVersionResource, namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err), err == nil && object.GetDeletionTimestamp() != nil:
		return "", nil
	case err != nil:
		return "", err
	}
	return object.GetUID(), nil
}

var (
	errUnheard = errors.New("history knows of no such object: it is not kept so long, or it never was")
	errEnding  = errors.New("it is still being deleted: wait until it is gone")
	errExists  = errors.New("it exists: only what was deleted can be given back")
)

// beforeDeletion is the last revision before the newest deletion of an object began.
func beforeDeletion(a past.Answer) (uint64, error) {
	if len(a.Changes) == 0 {
		return 0, errUnheard
	}
	last := len(a.Changes) - 1
	for uid := a.Changes[last].UID; wasTakenBack(a.Changes, uid); uid = a.Changes[last].UID {
		for last >= 0 && a.Changes[last].UID == uid {
			last--
		}
		if last < 0 {
			return 0, errUnheard
		}
	}
	began := a.Changes[last].ResourceVersion
	if a.Changes[last].Did != "deleted" {
		return 0, errExists
	}
	for i := last - 1; i >= 0 && a.Changes[i].UID == a.Changes[last].UID; i-- {
		if slices.ContainsFunc(a.Changes[i].Fields, beginsDeletion) {
			began = a.Changes[i].ResourceVersion
		}
	}
	return began - 1, nil
}

func beginsDeletion(f past.Field) bool {
	return f.Path == "metadata.deletionTimestamp" && f.Before == nil
}

// wasTakenBack tells a namespace that was half given back from one that somebody deleted.
func wasTakenBack(changes []past.Change, uid string) bool {
	return slices.ContainsFunc(changes, func(c past.Change) bool {
		return c.UID == uid && slices.ContainsFunc(c.Fields, func(f past.Field) bool { return strings.Contains(f.Path, takenBack) })
	})
}
