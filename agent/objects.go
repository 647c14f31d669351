package agent

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// objects looks up what pods refer to. ConfigMaps, Secrets and claims are read
// from the API each time, so that a container never starts with old values;
// Services come from a cache, since every container start needs all of them.
type objects struct {
	client   kubernetes.Interface
	nodeName string
	services corelisters.ServiceLister
	synced   cache.InformerSynced
}

func (o *objects) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return o.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (o *objects) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return o.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (o *objects) Services(ctx context.Context, namespace string) ([]*corev1.Service, error) {
	if !cache.WaitForCacheSync(ctx.Done(), o.synced) {
		return nil, ctx.Err()
	}
	return o.services.Services(namespace).List(labels.Everything())
}

func (o *objects) Volume(ctx context.Context, namespace, claim string, owner *corev1.Pod) (*corev1.PersistentVolume, error) {
	pvc, err := o.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if owner != nil && !metav1.IsControlledBy(pvc, owner) {
		return nil, fmt.Errorf("PVC %q was not created for pod %q (pod is not owner)", namespace+"/"+claim, owner.Namespace+"/"+owner.Name)
	}
	if pvc.Status.Phase != corev1.ClaimBound {
		return nil, fmt.Errorf("persistentvolumeclaim %q is not bound", claim)
	}
	return o.client.CoreV1().PersistentVolumes().Get(ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
}

// RuntimeHandler is the handler of a RuntimeClass.
func (o *objects) RuntimeHandler(ctx context.Context, class string) (string, error) {
	got, err := o.client.NodeV1().RuntimeClasses().Get(ctx, class, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return got.Handler, nil
}

func (o *objects) Token(ctx context.Context, pod *corev1.Pod, audience string, seconds int64) (string, time.Time, error) {
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if audience != "" {
		req.Spec.Audiences = []string{audience}
	}
	got, err := o.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, accountOf(pod), req, metav1.CreateOptions{})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("failed to fetch token: %w", err)
	}
	return got.Status.Token, got.Status.ExpirationTimestamp.Time, nil
}

// ServiceAccount reads an account that a pod of this node names.
func (o *objects) ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return o.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
}

// AccountToken is a token for the audience that is good for an hour, while the pod and this very account exist.
func (o *objects) AccountToken(
	ctx context.Context, pod *corev1.Pod, account *corev1.ServiceAccount, audience string,
) (string, time.Time, error) {
	got, err := o.client.CoreV1().ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{
		ObjectMeta: metav1.ObjectMeta{UID: account.UID},
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:      []string{audience},
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", time.Time{}, err
	}
	return got.Status.Token, got.Status.ExpirationTimestamp.Time, nil
}

// accountOf is the name of the pod's service account.
func accountOf(pod *corev1.Pod) string {
	if pod.Spec.ServiceAccountName == "" {
		return "default"
	}
	return pod.Spec.ServiceAccountName
}
