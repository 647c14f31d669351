package revoked

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/internal/revocation"
)

// Follow tells the judge of each list until ctx ends.
func Follow(ctx context.Context, client kubernetes.Interface, judge *revocation.Judge, logger *slog.Logger) {
	f := follower{judge, logger}
	lists := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(metav1.NamespaceSystem),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, revocation.ConfigMapName).String()
		}))
	_, err := lists.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.use(o) },
		UpdateFunc: func(_, o any) { f.use(o) },
		DeleteFunc: func(any) { f.judge.UseData(nil, logger) },
	})
	if err != nil { // it has ended already
		return
	}
	lists.Start(ctx.Done())
	<-ctx.Done()
	lists.Shutdown()
}

type follower struct {
	judge  *revocation.Judge
	logger *slog.Logger
}

// use takes a list.
func (f follower) use(o any) {
	list, ok := o.(*corev1.ConfigMap)
	if !ok || list.Name != revocation.ConfigMapName || list.Namespace != metav1.NamespaceSystem {
		return
	}
	f.judge.UseData(list.Data, f.logger)
}
