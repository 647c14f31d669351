package podautoscaler

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	cached "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	customclient "k8s.io/metrics/pkg/client/custom_metrics"
	externalclient "k8s.io/metrics/pkg/client/external_metrics"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// discoveryInterval is how often the API is asked again for a kind that it did not know.
const discoveryInterval = 30 * time.Second

// connect makes the clients of a term.
func connect(env *reconcile.Env) (outside, error) {
	if env.REST == nil {
		return outside{}, errors.New("podautoscaler: the Env lacks REST")
	}
	cfg := rest.CopyConfig(env.REST)
	cfg.Timeout = passTimeout
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next, answerBytesMax} })
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached.NewMemCacheClient(env.Discovery))
	scaling, err := scale.NewForConfig(cfg, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(env.Discovery))
	if err != nil {
		return outside{}, err
	}
	resources, err := resourceclient.NewForConfig(cfg)
	if err != nil {
		return outside{}, err
	}
	external, err := externalclient.NewForConfig(cfg)
	if err != nil {
		return outside{}, err
	}
	known := &kinds{ResettableRESTMapper: mapper, clock: env.Clock}
	custom := customclient.NewForConfig(cfg, known, versions{env.Discovery})
	return outside{requests{resources, custom, external}, &scaleRequests{scaling, known}}, nil
}

// kinds asks the API again for a kind that is not there, not too often.
type kinds struct {
	meta.ResettableRESTMapper
	clock clock.WithTicker
	mu    sync.Mutex
	asked time.Time
}

func (k *kinds) RESTMappings(kind schema.GroupKind, names ...string) ([]*meta.RESTMapping, error) {
	found, err := k.ResettableRESTMapper.RESTMappings(kind, names...)
	if err == nil || !k.due() {
		return found, err
	}
	k.Reset()
	return k.ResettableRESTMapper.RESTMappings(kind, names...)
}

func (k *kinds) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.clock.Now(); k.asked.IsZero() || now.Sub(k.asked) >= discoveryInterval {
		k.asked = now
		return true
	}
	return false
}

// versions looks anew which version of custom metrics is served: another server may have come.
type versions struct{ discovery.DiscoveryInterface }

func (v versions) PreferredVersion() (schema.GroupVersion, error) {
	return customclient.NewAvailableAPIsGetter(v).PreferredVersion()
}

// Invalidate has nothing to do: no version is remembered.
func (versions) Invalidate() {}
