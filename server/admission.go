package server

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	k8sadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/discovery/cached/memory"
	dynamicclient "k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/apiserver/admission"
	"github.com/setpoint-io/setpoint/apiserver/admission/configuration"
	"github.com/setpoint-io/setpoint/apiserver/admission/dynamic"
	"github.com/setpoint-io/setpoint/apiserver/admission/firstclaims"
	"github.com/setpoint-io/setpoint/apiserver/admission/optional"
	"github.com/setpoint-io/setpoint/apiserver/admission/quota"
	"github.com/setpoint-io/setpoint/apiserver/admission/revocations"
	guard "github.com/setpoint-io/setpoint/apiserver/admission/rotations"
	"github.com/setpoint-io/setpoint/server/inprocess"
)

// clients are how the parts of a server ask its own API, without a socket.
type clients struct {
	typed  kubernetes.Interface
	any    dynamicclient.Interface
	mapper meta.ResettableRESTMapper
}

func newClients(door *inprocess.Door) (clients, error) {
	config := door.Config(inprocess.Server, 0)
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, err
	}
	anyKind, err := dynamicclient.NewForConfig(config)
	if err != nil {
		return clients{}, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(typed.Discovery()))
	return clients{typed: typed, any: anyKind, mapper: mapper}, nil
}

// validateAdmission says what is wrong with what the administrator's file tells admission plugins. added are those that run beside the
// default ones.
func validateAdmission(c configuration.Configuration, added []string) error {
	_, limitedErr := quota.ParseLimited(c.For("ResourceQuota"))
	_, addedErr := optional.New(optional.Config{Configuration: c.For}, added)
	return errors.Join(admission.ValidatePodSecurity(c.For("PodSecurity")), limitedErr, addedErr, dynamic.Validate(c.For))
}

// firstClaims reads caches that the control loops read, too.
func (a *api) firstClaims() firstclaims.Plugin {
	services, source := a.caches.Core().V1().Services(), a.config.LoadBalancers
	ingresses, classes := a.caches.Networking().V1().Ingresses(), a.caches.Networking().V1().IngressClasses()
	synced := []cache.InformerSynced{services.Informer().HasSynced, ingresses.Informer().HasSynced, classes.Informer().HasSynced}
	return firstclaims.Plugin{
		Services: services.Lister(), Ingresses: ingresses.Lister(), Classes: classes.Lister(), Reserved: a.reserved,
		Synced: append(synced, a.machinesKnown...), AtNodes: !source.None && len(source.Pool) == 0,
	}
}

// newAdmission makes the chain that completes and judges writes. Webhooks and
// policies read the caches that the control loops read.
func newAdmission(ctx context.Context, a *api, c clients) (k8sadmission.Interface, error) {
	judge := a.access.Authorizer
	added, err := optional.New(optional.Config{
		Authorizer: judge, Mapper: c.mapper, Namespace: admission.Namespaces(a.storage),
		Configuration: a.config.AdmissionConfiguration.For, Clock: a.config.Clock,
	}, a.config.EnabledAdmission)
	if err != nil {
		return nil, err
	}
	configured, err := dynamic.New(dynamic.Config{
		Store: a.storage, Informers: a.caches, Client: c.typed, Dynamic: c.any,
		Mapper: c.mapper, Dial: a.dialPods, Authorizer: judge, Stop: ctx.Done(), Configuration: a.config.AdmissionConfiguration.For,
		Server: a.config.Name, Logger: a.config.Logger,
	})
	if err != nil {
		return nil, err
	}
	return admission.New(admission.Config{
		Store: a.storage, Authorizer: judge, Disabled: a.config.DisabledAdmission, ExternalIPs: a.config.ServiceExternalIPs, Reserved: a.reserved,
		AddressPool: len(a.config.LoadBalancers.Pool) > 0,
		Metrics:     a.admissionMetrics, Added: added, PodSecurity: a.config.AdmissionConfiguration.For("PodSecurity"),
		Last: append([]k8sadmission.Interface{
			a.access.Escalation, revocations.Plugin{Authorizer: judge, Server: a.judgeRevokedServer}, guard.Plugin{},
			a.firstClaims(), a.firstRoutes(),
		}, configured...),
	})
}
