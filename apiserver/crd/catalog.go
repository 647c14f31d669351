package crd

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/setpoint-io/setpoint/apiserver/rest"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Resource is where definitions are stored.
var Resource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// Config is what a Catalog is made of. All fields are required.
type Config struct {
	Codecs  serializer.CodecFactory
	Storage *storage.Store
	// Models are the schemas of the published types that custom resources refer to
	// (ObjectMeta and what is below it), by model name.
	Models func() (map[string]*spec.Schema, error)
	// Services finds the webhooks that definitions name by service.
	Services webhook.ServiceResolver
	// Dialled makes the clients of those webhooks connect to pods.
	Dialled webhook.AuthenticationInfoResolverWrapper
}

// Catalog serves the custom resources of all definitions. It is safe for
// concurrent use.
type Catalog struct {
	config     Config
	table      *storage.Table
	scheme     *runtime.Scheme
	converters *converters

	mu sync.Mutex
	// built are the definitions in use, by name.
	built map[string]*definition
	offer offer
}

// New returns a catalog of the definitions in the store.
func New(config Config) (*Catalog, error) {
	converters, err := newConverters(config.Services, config.Dialled)
	if err != nil {
		return nil, err
	}
	return &Catalog{
		config: config, table: config.Storage.Table(Resource), scheme: newScheme(), converters: converters,
		built: map[string]*definition{},
	}, nil
}

// Handler returns the handler of a request for a custom resource, or nil. found
// tells whether the path exists at all: then the answer is 405, not 404. The
// handlers admit and authorize as base does.
func (c *Catalog) Handler(ctx context.Context, base *rest.Endpoints, info *request.RequestInfo) (handler http.HandlerFunc, found bool) {
	d, err := c.serving(ctx, info)
	if err != nil {
		return c.refusal(info, err), true
	}
	if d == nil {
		return nil, false
	}
	v, err := d.version(info.APIVersion)
	if err != nil {
		return c.refusal(info, apierrors.NewInternalError(err)), true
	}
	endpoints, err := v.endpoints(base)
	if err != nil {
		return c.refusal(info, apierrors.NewInternalError(err)), true
	}
	handler, found = endpoints.Handler(info)
	if handler == nil && !found && info.Subresource != "" {
		refusal := c.refusal(info, apierrors.NewNotFound(groupResource(info), info.Name))
		if v.warning != "" {
			refusal = rest.Warned(v.warning, refusal) // and no more: anything may stand in the path
		}
		return refusal, true
	}
	return v.warned(base, handler), found
}

func groupResource(info *request.RequestInfo) schema.GroupResource {
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
}

func (c *Catalog) refusal(info *request.RequestInfo, err error) http.HandlerFunc {
	gv := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	return func(w http.ResponseWriter, r *http.Request) {
		responsewriters.ErrorNegotiated(err, c.config.Codecs, gv, w, r)
	}
}

// serving returns the definition that serves a request, or nil. What this replica
// does not know yet, another may have shown to the client already, so a miss is
// looked at again in the newest state.
func (c *Catalog) serving(ctx context.Context, info *request.RequestInfo) (*definition, error) {
	if !strings.Contains(info.APIGroup, ".") {
		return nil, nil // the group of a definition is a domain
	}
	name := info.Resource + "." + info.APIGroup
	for _, resourceVersion := range []string{"0", ""} {
		cached, err := c.table.Get(ctx, "", name, resourceVersion)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		crd := cached.Object().(*apiextensionsv1.CustomResourceDefinition)
		if isServed(crd) && hasVersion(crd, info.APIVersion) {
			return c.definition(crd), nil
		}
	}
	return nil, nil
}

// hasVersion reports whether a version is served. While a definition is being deleted
// its storage version always is, so that its instances can be deleted.
func hasVersion(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	if apihelpers.HasServedCRDVersion(crd, version) {
		return true
	}
	stored, err := apihelpers.GetCRDStorageVersion(crd)
	return err == nil && stored == version && crd.DeletionTimestamp != nil
}

// isServed reports whether a definition has ever been established: its names are its
// own then, and the cleanup of its instances waits for their end.
func isServed(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
}

// definition returns what is built of a definition, which is at least as new as crd.
func (c *Catalog) definition(crd *apiextensionsv1.CustomResourceDefinition) *definition {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.built[crd.Name]
	if d != nil && (d.isOf(crd) || revisionOf(d.crd) > revisionOf(crd)) {
		return d
	}
	if d != nil {
		d.end()
	}
	d = newDefinition(c, crd)
	c.built[crd.Name] = d
	return d
}

// followPause is the time between two tries to follow the definitions. They fail while
// the server has no leader.
const followPause = time.Second

// Run lets go of definitions that changed or went, and so ends their watches, until
// ctx ends.
func (c *Catalog) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.follow(ctx); err == nil || apierrors.IsResourceExpired(err) {
			continue
		}
		select {
		case <-time.After(followPause):
		case <-ctx.Done():
		}
	}
}

// follow watches the definitions from now on, having looked at those in use.
func (c *Catalog) follow(ctx context.Context) error {
	w, err := c.table.Watch(ctx, storage.WatchOptions{ResourceVersion: "0", SendInitialEvents: new(false)})
	if err != nil {
		return err
	}
	defer w.Stop()
	for _, name := range c.inUse() {
		c.review(ctx, name)
	}
	for e := range w.ResultChan() {
		switch obj := storage.Uncache(e.Object).(type) {
		case *apiextensionsv1.CustomResourceDefinition:
			c.review(ctx, obj.Name)
		case *metav1.Status:
			return apierrors.FromObject(obj)
		}
	}
	return nil
}

func (c *Catalog) inUse() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.built))
}

// review drops what was built of a definition that the table no longer holds so.
func (c *Catalog) review(ctx context.Context, name string) {
	cached, err := c.table.Get(ctx, "", name, "0")
	if err != nil && !apierrors.IsNotFound(err) {
		return // the replica is stopping
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.built[name]
	if d == nil || err == nil && d.isOf(cached.Object().(*apiextensionsv1.CustomResourceDefinition)) {
		return
	}
	d.end()
	delete(c.built, name)
}
