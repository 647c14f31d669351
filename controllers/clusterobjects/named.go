package clusterobjects

import (
	"context"
	"errors"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/podnetwork"
)

// Upstream's names.
const (
	// authenticationConfig is where API servers behind this one read whom to believe: the
	// authority of clients, and the front proxies that name users.
	authenticationConfig = "extension-apiserver-authentication"
	// tokenTracking says, under trackedSince, since which day the last use of legacy tokens is recorded.
	tokenTracking = "kube-apiserver-legacy-service-account-token-tracking"
	trackedSince  = "since"
	dateFormat    = "2006-01-02"
)

// cached reads are not older than the last pass's writes, seen by the same server.
var cached = metav1.GetOptions{ResourceVersion: "0"}

// EnsureServiceCIDR shows the ranges and that they are in use. One of IPv6 is added to one of IPv4, as upstream.
func EnsureServiceCIDR(ctx context.Context, client kubernetes.Interface, cidrs []string) error {
	ranges := client.NetworkingV1().ServiceCIDRs()
	have, err := ranges.Get(ctx, podnetwork.ServiceCIDR, cached)
	if apierrors.IsNotFound(err) {
		have, err = ranges.Create(ctx, &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: podnetwork.ServiceCIDR},
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: cidrs},
		}, metav1.CreateOptions{})
	}
	if err == nil && len(have.Spec.CIDRs) == 1 && len(cidrs) > 1 && have.Spec.CIDRs[0] == cidrs[0] {
		have = have.DeepCopy()
		have.Spec.CIDRs = cidrs
		have, err = ranges.Update(ctx, have, metav1.UpdateOptions{})
	}
	judged := func(status metav1.ConditionStatus) bool {
		return meta.IsStatusConditionPresentAndEqual(have.Status.Conditions, networkingv1.ServiceCIDRConditionReady, status)
	}
	if err != nil || have.DeletionTimestamp != nil || judged(metav1.ConditionTrue) || judged(metav1.ConditionFalse) {
		return err // what the controller of ranges says stays
	}
	have = have.DeepCopy()
	meta.SetStatusCondition(&have.Status.Conditions, metav1.Condition{
		Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Message: "Kubernetes default Service CIDR is ready",
	})
	_, err = ranges.UpdateStatus(ctx, have, metav1.UpdateOptions{})
	return err
}

// ensureAuthentication tells the servers behind this one whom to believe. Keys that
// others have added stay. What is not known yet is tried again, and nobody is told a part of it who was told nothing.
func ensureAuthentication(ctx context.Context, client kubernetes.Interface, wanted func() (map[string]string, error)) error {
	want, unknown := wanted()
	configMaps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	have, err := configMaps.Get(ctx, authenticationConfig, cached)
	if apierrors.IsNotFound(err) && unknown != nil {
		return unknown
	}
	if apierrors.IsNotFound(err) {
		return created(
			configMaps.Create(
				ctx,
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: authenticationConfig}, Data: want},
				metav1.CreateOptions{},
			),
		)
	}
	if err != nil {
		return err
	}
	data := map[string]string{}
	maps.Copy(data, have.Data)
	maps.Copy(data, want)
	if maps.Equal(data, have.Data) {
		return unknown
	}
	have = have.DeepCopy()
	have.Data = data
	_, err = configMaps.Update(ctx, have, metav1.UpdateOptions{})
	return errors.Join(err, unknown)
}

// ensureTokenTracking writes down since when the API records the use of legacy tokens. A date that cannot be read is
// today: nothing that rests on it may end too early.
func ensureTokenTracking(ctx context.Context, client kubernetes.Interface, now time.Time) error {
	configMaps, since := client.CoreV1().ConfigMaps(metav1.NamespaceSystem), now.UTC().Format(dateFormat)
	have, err := configMaps.Get(ctx, tokenTracking, cached)
	if apierrors.IsNotFound(err) {
		fresh := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: tokenTracking}, Data: map[string]string{trackedSince: since}}
		return created(configMaps.Create(ctx, fresh, metav1.CreateOptions{}))
	}
	if err != nil {
		return err
	}
	if _, err := time.Parse(dateFormat, have.Data[trackedSince]); err == nil {
		return nil
	}
	have = have.DeepCopy()
	if have.Data == nil {
		have.Data = map[string]string{}
	}
	have.Data[trackedSince] = since
	_, err = configMaps.Update(ctx, have, metav1.UpdateOptions{})
	return err
}
