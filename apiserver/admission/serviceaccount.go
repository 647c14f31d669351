package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

const (
	defaultServiceAccountName = "default"
	// enforceMountableSecrets limits pods of an account to the secrets it lists.
	enforceMountableSecrets = "kubernetes.io/enforce-mountable-secrets"
	// A new namespace gets its default account from a controller a moment later; a
	// pod that comes first waits for it this often, this long.
	defaultAccountAttempts = 10
	defaultAccountInterval = 100 * time.Millisecond
)

// serviceAccount gives every pod an account that exists, and what comes with it: a
// token volume and the secrets by which images are pulled.
type serviceAccount struct {
	onWrite
	accounts objects[*corev1.ServiceAccount]
	// tokens: this API issues them. A pod that waits for one in vain never starts.
	tokens bool
}

func newServiceAccount(store *storage.Store) serviceAccount {
	s := serviceAccount{accounts: objectsOf[*corev1.ServiceAccount](store, corev1.SchemeGroupVersion.WithResource("serviceaccounts"))}
	if s.accounts.table != nil {
		s.tokens = slices.ContainsFunc(s.accounts.table.Kind().Subresources, func(r resource.Subresource) bool { return r.Name == "token" })
	}
	return s
}

// Admit implements admission.MutationInterface.
func (s serviceAccount) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil || a.GetOperation() != admission.Create || isMirror(pod) {
		return nil
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = defaultServiceAccountName
	}
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	account, err := s.accountOf(ctx, a, pod)
	if err != nil {
		return err
	}
	if s.tokens && wantsToken(account, pod) {
		mountToken(pod)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, account.ImagePullSecrets...)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (s serviceAccount) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	created := ok && a.GetOperation() == admission.Create && isMain(a, podsResource)
	debugged := ok && a.GetSubresource() == "ephemeralcontainers"
	switch {
	case !created && !debugged:
		return nil
	case created && isMirror(pod):
		return judgeMirror(a, pod)
	}
	account, err := s.accountOf(ctx, a, pod)
	if err != nil {
		return err
	}
	if enforce, _ := strconv.ParseBool(account.Annotations[enforceMountableSecrets]); !enforce {
		return nil
	}
	if err := limitSecrets(account, pod, debugged); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// accountOf returns the account of a pod; the default account of a namespace is
// waited for.
func (s serviceAccount) accountOf(ctx context.Context, a admission.Attributes, pod *corev1.Pod) (*corev1.ServiceAccount, error) {
	name := pod.Spec.ServiceAccountName
	account, found, err := s.accounts.get(ctx, a.GetNamespace(), name)
	for attempt := 1; !found && err == nil && name == defaultServiceAccountName && attempt < defaultAccountAttempts; attempt++ {
		select {
		case <-ctx.Done():
			return nil, apierrors.NewTimeoutError(ctx.Err().Error(), 0)
		case <-time.After(defaultAccountInterval):
		}
		account, found, err = s.accounts.newest(ctx, a.GetNamespace(), name)
	}
	if err == nil && !found {
		err = apierrors.NewNotFound(corev1.Resource("serviceaccount"), name)
	}
	if err != nil {
		return nil, admission.NewForbidden(a, fmt.Errorf("error looking up service account %s/%s: %w", a.GetNamespace(), name, err))
	}
	return account, nil
}

// isMirror reports whether an agent shows a pod that it runs by itself. Its spec
// must stay what the agent read.
func isMirror(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// judgeMirror keeps a node from reading, through a pod that it made up, what is not
// bound to it.
func judgeMirror(a admission.Attributes, pod *corev1.Pod) error {
	if pod.Spec.ServiceAccountName != "" {
		return admission.NewForbidden(a, errors.New("a mirror pod may not reference service accounts"))
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		return admission.NewForbidden(a, errors.New("a mirror pod may not reference resourceclaims"))
	}
	used := referencesOf(pod)
	if len(used.secrets) > 0 {
		return admission.NewForbidden(a, errors.New("a mirror pod may not reference secrets"))
	}
	if used.configMaps {
		return admission.NewForbidden(a, errors.New("a mirror pod may not reference configmaps"))
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return admission.NewForbidden(a, errors.New("a mirror pod may not reference persistentvolumeclaims"))
		}
		for _, p := range projections(v) {
			if p.ServiceAccountToken != nil {
				return admission.NewForbidden(a, errors.New("a mirror pod may not use ServiceAccountToken volume projections"))
			}
		}
	}
	return nil
}
