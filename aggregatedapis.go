package setpoint

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// authenticationConfig is where API servers behind this one read whom to believe: the
// authority of clients, and the front proxies that name users. Upstream's name.
const authenticationConfig = "extension-apiserver-authentication"

// ensureAuthenticationConfig tells the servers behind this one whom to believe. Keys
// that others have added stay.
func (s *Server) ensureAuthenticationConfig(ctx context.Context, client kubernetes.Interface) error {
	want := s.frontProxy.Configuration(s.config.Trust.CA)
	configMaps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	have, err := configMaps.Get(ctx, authenticationConfig, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		return ensured(configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: authenticationConfig}, Data: want}, metav1.CreateOptions{}))
	}
	if err != nil {
		return err
	}
	data := map[string]string{}
	maps.Copy(data, have.Data)
	maps.Copy(data, want)
	if maps.Equal(data, have.Data) {
		return nil
	}
	have = have.DeepCopy()
	have.Data = data
	_, err = configMaps.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

func priorityOf(gv schema.GroupVersion) (group, version int32) {
	p := kinds.PriorityOf(gv)
	return p.Group, p.Version
}

// localAPIs are the APIServices of the group versions that are built in; that of
// APIServices themselves is not listed, as upstream.
func localAPIs(offered []*resource.Any) []*apiregistrationv1.APIService {
	var all []*apiregistrationv1.APIService
	seen := map[schema.GroupVersion]bool{apiregistrationv1.SchemeGroupVersion: true}
	for _, kind := range offered {
		gv := kind.GroupVersionKind.GroupVersion()
		if seen[gv] {
			continue
		}
		seen[gv] = true
		group, version := priorityOf(gv)
		all = append(all, &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group},
			Spec:       apiregistrationv1.APIServiceSpec{Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: group, VersionPriority: version},
		})
	}
	return all
}
