package undelete

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	fieldManager = "setpoint-undelete"
	// takenBack is the annotation of a namespace that is removed because not all could be given back.
	takenBack = "setpoint.io/taken-back"
	// accountsTimeout bounds waiting for the ServiceAccount that a new namespace gets, takeBackTimeout removing what was half made.
	accountsTimeout, accountsPeriod = 20 * time.Second, 50 * time.Millisecond
	takeBackTimeout                 = 10 * time.Second
)

// giver carries out a plan.
type giver struct {
	*cluster
	plan *plan
	// uids are what owners have now, by their former ones.
	mutex sync.Mutex
	uids  map[types.UID]types.UID
	// freed are claims whose volumes were released for them.
	freed []*part
	// meanwhile are objects that somebody else made since the namespace was there.
	meanwhile []omission
}

// give makes all that is in the plan. If something is refused, the namespace of the plan is removed again.
func (g *giver) give(ctx context.Context) error {
	for i, wave := range g.plan.waves {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		for _, p := range wave {
			group.Go(func() error { return g.create(ctx, p, i > 0) })
		}
		if err := group.Wait(); err != nil {
			return g.takeBack(ctx, err)
		}
	}
	return nil
}

// create makes one object. Within a new namespace others may have been faster.
func (g *giver) create(ctx context.Context, p *part, within bool) error {
	object := p.object.DeepCopy()
	g.pointToNow(object)
	if p.volume != "" {
		if err := g.freeVolume(ctx, p); err != nil {
			return err
		}
	}
	made, err := g.createOnceAccountIsThere(ctx, p, object)
	if within && apierrors.IsAlreadyExists(err) {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		g.meanwhile = append(g.meanwhile, omission{p, "somebody made it in the new namespace already"})
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.uids[p.uid] = made.GetUID()
	return nil
}

// pointToNow has references name the uids of now.
func (g *giver) pointToNow(object *unstructured.Unstructured) {
	owners := object.GetOwnerReferences()
	g.mutex.Lock()
	for i := range owners {
		if now := g.uids[owners[i].UID]; now != "" {
			owners[i].UID = now
		}
	}
	g.mutex.Unlock()
	if len(owners) > 0 {
		object.SetOwnerReferences(owners)
	}
}

// createOnceAccountIsThere waits for the account of a pod, which a new namespace gets a moment later.
func (g *giver) createOnceAccountIsThere(
	ctx context.Context, p *part, object *unstructured.Unstructured,
) (made *unstructured.Unstructured, err error) {
	waited := wait.PollUntilContextTimeout(ctx, accountsPeriod, accountsTimeout, true, func(ctx context.Context) (bool, error) {
		made, err = in(g.now, p.resource, object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
		return !(apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account")), nil
	})
	if err == nil {
		err = waited
	}
	return made, err
}

// freeVolume has a volume that was kept for the former claim wait for the new one, which has the same name.
func (g *giver) freeVolume(ctx context.Context, p *part) error {
	volume, err := g.now.Resource(volumes).Get(ctx, p.volume, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the volume %s of %s: %w", p.volume, p, err)
	}
	if uid, _, _ := unstructured.NestedString(volume.Object, "spec", "claimRef", "uid"); uid != string(p.uid) {
		return nil
	}
	unstructured.RemoveNestedField(volume.Object, "spec", "claimRef", "uid")
	unstructured.RemoveNestedField(volume.Object, "spec", "claimRef", "resourceVersion")
	if _, err := g.now.Resource(volumes).Update(ctx, volume, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("the volume %s is kept for the former %s, and was not given to the new one: %w", p.volume, p, err)
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.freed = append(g.freed, p)
	return nil
}

// keepVolumes has volumes wait for their former claims again: the next undelete knows them by these.
func (g *giver) keepVolumes(ctx context.Context) (err error) {
	for _, p := range g.freed {
		former := []byte(`{"spec":{"claimRef":{"uid":"` + string(p.uid) + `"}}}`)
		_, failed := g.now.Resource(volumes).Patch(ctx, p.volume, types.MergePatchType, former, metav1.PatchOptions{FieldManager: fieldManager})
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("the volume %s is not kept for the former %s any more: %w", p.volume, p, failed))
		}
	}
	return err
}

// takeBack removes the namespace that was made, if it was one, with all that is in it.
func (g *giver) takeBack(ctx context.Context, cause error) error {
	first := g.plan.waves[0][0]
	uid := g.uids[first.uid]
	if first.resource != namespaces || uid == "" {
		return fmt.Errorf("nothing was given back: %w", cause)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTimeout)
	defer cancel()
	name := first.object.GetName()
	// If this is refused, --at still reaches what was there before.
	_, _ = g.now.Resource(namespaces).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+takenBack+`":"true"}}}`),
		metav1.PatchOptions{FieldManager: fieldManager})
	err := g.now.Resource(namespaces).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil {
		err = fmt.Errorf("the namespace %s could not be removed again: %w", name, err)
		return errors.Join(fmt.Errorf("given back in part only: %w", cause), err)
	}
	cause = fmt.Errorf("nothing was given back, and the namespace %s is being removed again: %w", name, cause)
	return errors.Join(cause, g.keepVolumes(ctx))
}
