package testclient

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

var errTarget = errors.New("a target is KIND/NAME, such as deployment/shop; another namespace is chosen with In")

// Kinds knows what a cluster serves. It asks when it is first needed, and again for what it does not know.
type Kinds struct {
	mu       sync.Mutex
	mapper   meta.ResettableRESTMapper
	expanded meta.RESTMapper
}

// unknownKindError is about a kind that the cluster does not serve.
type unknownKindError struct{ kind string }

// Error implements error.
func (e *unknownKindError) Error() string {
	return fmt.Sprintf("the cluster does not serve %q: is its CRD missing in Config.CRDs?", e.kind)
}

func (k *Kinds) find(config *rest.Config, find func(meta.RESTMapper) (*meta.RESTMapping, error)) (*meta.RESTMapping, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mapper == nil {
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return nil, err
		}
		cached := memory.NewMemCacheClient(client)
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
		k.mapper, k.expanded = mapper, restmapper.NewShortcutExpander(mapper, cached, nil)
	}
	mapping, err := find(k.expanded)
	if meta.IsNoMatchError(err) {
		k.mapper.Reset()
		mapping, err = find(k.expanded)
	}
	return mapping, err
}

// target finds KIND/NAME.
func (c *Client) target(target string) (dynamic.ResourceInterface, string, error) {
	kind, name, found := strings.Cut(target, "/")
	if !found || kind == "" || name == "" || strings.Contains(name, "/") {
		return nil, "", errTarget
	}
	mapping, err := c.Kinds.find(c.Admin, func(m meta.RESTMapper) (*meta.RESTMapping, error) { return named(m, kind) })
	if meta.IsNoMatchError(err) {
		return nil, "", &unknownKindError{kind}
	}
	if err != nil {
		return nil, "", err
	}
	client, err := c.resource(mapping, c.Namespace)
	return client, name, err
}

// named finds a kind as kubectl does: pods, pod, po, Deployment, deployments.apps, deployments.v1.apps.
func named(m meta.RESTMapper, kind string) (*meta.RESTMapping, error) {
	versioned, resource := schema.ParseResourceArg(strings.ToLower(kind))
	var gvk schema.GroupVersionKind
	if versioned != nil {
		gvk, _ = m.KindFor(*versioned)
	}
	if gvk.Empty() {
		var err error
		if gvk, err = m.KindFor(resource.WithVersion("")); err != nil {
			return nil, err
		}
	}
	return m.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// resource is a client of a kind, of a namespace if it has any.
func (c *Client) resource(mapping *meta.RESTMapping, namespace string) (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(c.Viewed)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(mapping.Resource), nil
	}
	return client.Resource(mapping.Resource).Namespace(namespace), nil
}
