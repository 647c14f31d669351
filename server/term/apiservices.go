package term

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

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
		group, version := kinds.Priorities(gv)
		all = append(all, &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group},
			Spec: apiregistrationv1.APIServiceSpec{
				Group:                gv.Group,
				Version:              gv.Version,
				GroupPriorityMinimum: group,
				VersionPriority:      version,
			},
		})
	}
	return all
}
