package agent

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

func (o *objects) TrustBundle(ctx context.Context, name string) (*certificatesv1.ClusterTrustBundle, error) {
	return o.client.CertificatesV1().ClusterTrustBundles().Get(ctx, name, metav1.GetOptions{})
}

func (o *objects) TrustBundles(
	ctx context.Context,
	signer string,
	selector labels.Selector,
) ([]certificatesv1.ClusterTrustBundle, error) {
	list, err := o.client.CertificatesV1().ClusterTrustBundles().List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.signerName", signer).String(), LabelSelector: selector.String(),
	})
	if err != nil {
		return nil, fmt.Errorf("while listing ClusterTrustBundles: %w", err)
	}
	return list.Items, nil
}

// RequestCertificate names the pod, its service account and this node by their UIDs too: the signer is to certify
// these, not others that have the names later.
func (o *objects) RequestCertificate(
	ctx context.Context,
	pod *corev1.Pod,
	p *corev1.PodCertificateProjection,
	stubRequest []byte,
) (*certificatesv1.PodCertificateRequest, error) {
	account, err := o.client.CoreV1().ServiceAccounts(pod.Namespace).Get(ctx, accountOf(pod), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("while fetching service account: %w", err)
	}
	node, err := o.client.CoreV1().Nodes().Get(ctx, o.nodeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("while getting node: %w", err)
	}
	request := &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: "req-", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}},
		Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: p.SignerName, PodName: pod.Name, PodUID: pod.UID, ServiceAccountName: account.Name, ServiceAccountUID: account.UID,
			NodeName: types.NodeName(node.Name), NodeUID: node.UID, MaxExpirationSeconds: p.MaxExpirationSeconds,
			StubPKCS10Request: stubRequest, UnverifiedUserAnnotations: p.UserAnnotations,
		},
	}
	made, err := o.client.CertificatesV1().PodCertificateRequests(pod.Namespace).Create(ctx, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("while creating PodCertificateRequest: %w", err)
	}
	return made, nil
}

// CertificateRequest reads a request, and follows it until it is decided or limit has passed.
func (o *objects) CertificateRequest(
	ctx context.Context,
	namespace, name string,
	limit time.Duration,
) (*certificatesv1.PodCertificateRequest, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	requests := o.client.CertificatesV1().PodCertificateRequests(namespace)
	for {
		got, err := requests.Get(ctx, name, metav1.GetOptions{})
		if err != nil || len(got.Status.Conditions) > 0 || limited.Err() != nil {
			return got, err
		}
		w, err := requests.Watch(limited, metav1.ListOptions{ResourceVersion: got.ResourceVersion, FieldSelector: fields.AndSelectors(
			fields.OneTermEqualSelector("metadata.name", name), fields.OneTermEqualSelector("spec.nodeName", o.nodeName)).String()})
		if err == nil {
			awaitEvent(limited, w)
		}
		wait.For(limited, requestRetry)
	}
}

// requestRetry is the pause between two reads of a request.
const requestRetry = 100 * time.Millisecond

// awaitEvent returns after the first event, at the end of the watch, or when ctx ends.
func awaitEvent(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	select {
	case <-ctx.Done():
	case <-w.ResultChan():
	}
}
