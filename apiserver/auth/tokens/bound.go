package tokens

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	accountsResource = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	podsResource     = corev1.SchemeGroupVersion.WithResource("pods")
	secretsResource  = corev1.SchemeGroupVersion.WithResource("secrets")
	nodesResource    = corev1.SchemeGroupVersion.WithResource("nodes")
)

// requirement is an object without which a token is no longer good.
type requirement struct {
	resource            schema.GroupVersionResource
	namespace, name, id string
}

// requirements are the account and what the token is bound to. The node of a pod
// is only told, not required: the pod is what counts.
func (k *kubernetesClaims) requirements() []requirement {
	needed := []requirement{{accountsResource, k.Namespace, k.Account.Name, k.Account.UID}}
	if k.Secret != nil {
		needed = append(needed, requirement{secretsResource, k.Namespace, k.Secret.Name, k.Secret.UID})
	}
	switch {
	case k.Pod != nil:
		needed = append(needed, requirement{podsResource, k.Namespace, k.Pod.Name, k.Pod.UID})
	case k.Node != nil:
		needed = append(needed, requirement{nodesResource, "", k.Node.Name, k.Node.UID})
	}
	return needed
}

// require fails unless all the objects are there. What this replica has not, it
// may not have yet: before it says no, it asks the others.
func (a *Authenticator) require(ctx context.Context, needed []requirement) error {
	for _, r := range needed {
		if a.check(ctx, r, "0") == nil {
			continue
		}
		if err := a.check(ctx, r, ""); err != nil {
			return err
		}
	}
	return nil
}

func (a *Authenticator) check(ctx context.Context, r requirement, resourceVersion string) error {
	found, err := a.objects.Table(r.resource).Get(ctx, r.namespace, r.name, resourceVersion)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: its %s %q is gone", ErrInvalidated, r.resource.GroupResource(), r.name)
	case err != nil:
		return err
	case string(found.Object().GetUID()) != r.id:
		return fmt.Errorf("%w: its %s %q was made anew", ErrInvalidated, r.resource.GroupResource(), r.name)
	case goneSince(found.Object(), a.objects.Now().Add(-clockLeeway)):
		return fmt.Errorf("%w: its %s %q is being deleted", ErrInvalidated, r.resource.GroupResource(), r.name)
	}
	return nil
}

// goneSince reports whether an object, a pod's grace included, should have ended before then.
func goneSince(o metav1.Object, then time.Time) bool {
	at := o.GetDeletionTimestamp()
	return at != nil && at.Time.Before(then)
}
