package rest

import (
	"context"
	"net/http"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	k8smanagedfields "k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
	"github.com/setpoint-io/setpoint/apiserver/auth/tokens"
	"github.com/setpoint-io/setpoint/apiserver/managedfields"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest/addresses"
	"github.com/setpoint-io/setpoint/apiserver/rest/mergekeys"
	"github.com/setpoint-io/setpoint/apiserver/rest/podview"
	"github.com/setpoint-io/setpoint/apiserver/rest/proxy"
	"github.com/setpoint-io/setpoint/apiserver/rest/stack"
	"github.com/setpoint-io/setpoint/apiserver/rest/table"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

const (
	// MaxBodyBytes is the largest request body (413 beyond it).
	MaxBodyBytes = 3 << 20
	// minWatchTimeout is the shortest life of a watch whose client named none; the
	// real one is drawn between it and its double.
	minWatchTimeout = 30 * time.Minute
)

// Config is what Endpoints are made of.
type Config struct {
	Kinds    []*resource.Any
	Scheme   *runtime.Scheme
	Codecs   serializer.CodecFactory
	Storage  *storage.Store
	Kubelets Kubelets
	// Servers are whose parts are seen as pods. Nil: there are no such pods.
	Servers Servers
	// Pods reaches whatever listens in a pod or on a node: no identity is shown and none asked for.
	Pods http.RoundTripper
	// Admission may be nil. Authorizer judges what a handler asks beyond its request, such as creation by update.
	Admission  admission.Interface
	Authorizer authorizer.Authorizer
	// Quota limits what namespaces hold; may be nil.
	Quota Quota
	// Reserved are ports of machines that no Service is given as its node port; may be nil.
	Reserved *reserved.Book
	// Tokens makes the tokens of service accounts. Nil: they are not served.
	Tokens *tokens.Issuer
	// Reviews are answered, not stored.
	Reviews []reviews.Review
	// Computed are kinds whose objects are made when they are asked for.
	Computed []Computed
	// Health is what component statuses tell. Nil: they are not served.
	Health func(ctx context.Context) error
	// Deprecated is told of requests for deprecated kinds, and which release will not have them, if that is known. It may be nil.
	Deprecated func(ctx context.Context, removed string)
	// Audited: somebody records requests, and may want the whole answer.
	Audited bool
	// TypeConverter knows the schemas of all kinds, for field managedfields.
	TypeConverter k8smanagedfields.TypeConverter
}

// Endpoints serves requests for resources.
type Endpoints struct {
	config Config
	// equivalents are resources that show the same objects.
	equivalents runtime.EquivalentResourceRegistry
	convertor   convertor

	kinds    map[schema.GroupVersionResource]*resource.Any
	stores   map[schema.GroupVersionResource]*Store
	handlers map[endpoint]http.HandlerFunc
	// patchTypes are the forms of PATCH that are understood.
	patchTypes []string
	// custom is the one kind served here, if it is a custom resource.
	custom *Custom
}

// endpoint is one verb of one resource or subresource.
type endpoint struct {
	gvr         schema.GroupVersionResource
	subresource string
	verb        string
}

// NewEndpoints builds the handlers of all kinds.
func NewEndpoints(config Config) (*Endpoints, error) {
	limitPatchCopies()
	e := &Endpoints{
		config: config, patchTypes: patchTypes, equivalents: newEquivalents(config.Kinds), convertor: newConvertor(config.Scheme, config.Kinds),
		kinds:  map[schema.GroupVersionResource]*resource.Any{},
		stores: map[schema.GroupVersionResource]*Store{}, handlers: map[endpoint]http.HandlerFunc{},
	}
	for _, kind := range config.Kinds {
		gvr := kind.GroupVersionResource()
		e.kinds[gvr] = kind
		store := newStore(kind, config.Storage.Table(gvr), config.Scheme)
		store.quota = config.Quota
		if kind.GroupResource() == corev1.Resource("services") {
			store.allocate = addresses.Allocator{Reserved: config.Reserved}.Allocate
		}
		e.stores[gvr] = store
	}
	for _, kind := range config.Kinds {
		if err := e.addKind(kind); err != nil {
			return nil, err
		}
	}
	for _, review := range config.Reviews {
		if err := e.addReview(review); err != nil {
			return nil, err
		}
	}
	for _, computed := range config.Computed {
		if err := e.addComputed(computed); err != nil {
			return nil, err
		}
	}
	return e, e.addComponentStatuses()
}

// Handler returns the handler for a request, or nil if nothing is served there.
// found tells whether the path exists at all: then the answer is 405, not 404.
func (e *Endpoints) Handler(info *request.RequestInfo) (handler http.HandlerFunc, found bool) {
	gvr := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	kind, ok := e.kinds[gvr]
	if !ok || !pathExists(kind, info) {
		return nil, false
	}
	key := endpoint{gvr, info.Subresource, info.Verb}
	if h, ok := e.handlers[key]; ok && verbFits(kind, info) {
		return h, true
	}
	for _, key.verb = range []string{"get", "create", "update"} {
		if _, ok := e.handlers[key]; ok {
			return nil, true
		}
	}
	return nil, false
}

// HasGroup reports whether anything of an API group is served here.
func (e *Endpoints) HasGroup(group string) bool {
	for gvr := range e.kinds {
		if gvr.Group == group {
			return true
		}
	}
	return false
}

// maxPathParts are resource, name and subresource; what follows proxy is for others.
const maxPathParts = 3

// pathExists refuses paths that name a namespace for what has none, or an object
// in no namespace for what has one.
func pathExists(kind *resource.Any, info *request.RequestInfo) bool {
	named := len(info.Parts) > 1
	switch {
	case len(info.Parts) > maxPathParts && info.Subresource != "proxy":
		return false
	case kind.GroupResource() == namespacesResource.GroupResource():
		return !strings.HasPrefix(info.Path, "/api/v1/namespaces/"+info.Namespace+"/namespaces")
	case kind.ClusterScoped:
		return info.Namespace == ""
	default:
		return info.Namespace != "" || !named
	}
}

// verbFits tells collections, which are listed and created in, from objects. The
// objects of all namespaces can only be listed and watched.
func verbFits(kind *resource.Any, info *request.RequestInfo) bool {
	named := len(info.Parts) > 1
	switch info.Verb {
	case "watch":
		return true
	case "list":
		return !named
	case "create":
		return named == (info.Subresource != "") && (kind.ClusterScoped || info.Namespace != "")
	case "deletecollection":
		return !named && !kind.OneByOne && (kind.ClusterScoped || info.Namespace != "")
	default:
		return named
	}
}

func (e *Endpoints) addKind(kind *resource.Any) error {
	store := e.stores[kind.GroupVersionResource()]
	if err := e.addMain(kind, store); err != nil {
		return err
	}
	if err := e.addParts(kind, store); err != nil {
		return err
	}
	if kind.Scale != nil {
		if err := e.addPatchable(kind, "scale", autoscalingv1.SchemeGroupVersion.WithKind("Scale"), newScaleStore(store), nil); err != nil {
			return err
		}
	}
	if err := e.addProxy(kind, store); err != nil {
		return err
	}
	switch kind.GroupResource() {
	case podsResource.GroupResource():
		return e.addPodSubresources(kind, store)
	case namespacesResource.GroupResource():
		return e.addFinalize(kind, store.finalize())
	case accountsResource.GroupResource():
		return e.addToken(kind, store)
	}
	return nil
}

func (e *Endpoints) addMain(kind *resource.Any, s *Store) error {
	reset, resetField := kind.Resets, ""
	if reset == nil && kind.HasStatus() {
		reset, resetField = []string{"status"}, "status"
	}
	scope, err := e.scope(kind, "", kind.GroupVersionKind, s, managedfields.Resets(reset))
	if err != nil {
		return err
	}
	admit, seen := e.config.Admission, podview.Of(kind.GroupVersionResource(), s)
	create := once(func() http.HandlerFunc { return handlers.CreateResource(s, scope, admit) })
	update := once(func() http.HandlerFunc { return handlers.UpdateResource(s, scope, admit) })
	if e.custom == nil && kind.Resets == nil {
		plain := newPlainWrites(s, scope, e.config, resetField)
		create, update = plain.fastCreate(create), plain.fastUpdate(update)
	}
	e.add(kind, "", map[string]http.HandlerFunc{
		"get":              s.fastGet(e.serializer(), e.config.Audited, handlers.GetResource(s, scope)),
		"list":             table.WithAccept(handlers.ListResource(seen, seen, scope, false, minWatchTimeout)),
		"watch":            table.WithAccept(handlers.ListResource(seen, seen, scope, true, minWatchTimeout)),
		"create":           create,
		"update":           update,
		"patch":            e.patch(s, scope, kind.New()),
		"delete":           once(func() http.HandlerFunc { return handlers.DeleteResource(s, true, scope, admit) }),
		"deletecollection": once(func() http.HandlerFunc { return handlers.DeleteCollection(s, true, scope, admit) }),
	})
	return nil
}

// Warned adds a warning to each answer.
func Warned(text string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		warning.AddWarning(r.Context(), "", text)
		next(w, r)
	}
}

// Deprecated warns everybody who asks, and tells Config.Deprecated.
func (e *Endpoints) Deprecated(text, removed string, next http.HandlerFunc) http.HandlerFunc {
	return Warned(text, func(w http.ResponseWriter, r *http.Request) {
		if e.config.Deprecated != nil {
			e.config.Deprecated(r.Context(), removed)
		}
		next(w, r)
	})
}

// once makes a handler anew for each request. Upstream's writing handlers serve one
// request each: they wrap their admission further in a variable that outlives it.
func once(handler func() http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { handler()(w, r) }
}

func (e *Endpoints) patch(s rest.Patcher, scope *handlers.RequestScope, obj runtime.Object) http.HandlerFunc {
	h := once(func() http.HandlerFunc { return handlers.PatchResource(s, scope, e.config.Admission, e.patchTypes) })
	return mergekeys.Guard(obj, MaxBodyBytes, func(w http.ResponseWriter, r *http.Request, err error) {
		responsewriters.ErrorNegotiated(apierrors.NewBadRequest(err.Error()), e.config.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
	}, h)
}

var patchTypes = []string{
	string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType),
	string(types.ApplyYAMLPatchType), string(types.ApplyCBORPatchType),
}

func (e *Endpoints) add(kind *resource.Any, subresource string, byVerb map[string]http.HandlerFunc) {
	warn, removed := kind.Deprecation()
	for verb, h := range byVerb {
		if warn != "" {
			h = e.Deprecated(warn, removed, h)
		}
		e.handlers[endpoint{kind.GroupVersionResource(), subresource, verb}] = h
	}
}

type patchable interface {
	rest.Patcher
	rest.TableConvertor
}

// addPatchable adds a subresource with get, update and patch.
func (e *Endpoints) addPatchable(kind *resource.Any, name string, gvk schema.GroupVersionKind, s patchable, reset *fieldpath.Set) error {
	scope, err := e.scope(kind, name, gvk, s, reset)
	if err != nil {
		return err
	}
	admit := e.config.Admission
	e.add(kind, name, map[string]http.HandlerFunc{
		"get":    handlers.GetResource(s, scope),
		"update": once(func() http.HandlerFunc { return handlers.UpdateResource(s, scope, admit) }),
		"patch":  e.patch(s, scope, s.New()),
	})
	return nil
}

func (e *Endpoints) addFinalize(kind *resource.Any, s *Store) error {
	scope, err := e.scope(kind, "finalize", kind.GroupVersionKind, s, nil)
	e.add(kind, "finalize", map[string]http.HandlerFunc{
		"update": once(func() http.HandlerFunc { return handlers.UpdateResource(s, scope, e.config.Admission) }),
	})
	return err
}

func (e *Endpoints) addPodSubresources(kind *resource.Any, pods *Store) error {
	creates := map[string]struct {
		gvk   schema.GroupVersionKind
		store rest.NamedCreater
	}{
		"binding":  {corev1.SchemeGroupVersion.WithKind("Binding"), bindingStore{pods}},
		"eviction": {policyv1.SchemeGroupVersion.WithKind("Eviction"), evictionStore{pods}},
	}
	for name, c := range creates {
		scope, err := e.scope(kind, name, c.gvk, pods, nil)
		if err != nil {
			return err
		}
		scope.AcceptsGroupVersionDelegate, _ = c.store.(rest.GroupVersionAcceptor)
		create := once(func() http.HandlerFunc { return handlers.CreateNamedResource(c.store, scope, e.config.Admission) })
		if bindings, ok := c.store.(bindingStore); ok {
			create = typedBindings{bindings, scope, admission.WithAudit(e.config.Admission), e.config.Codecs}.before(create)
		}
		e.add(kind, name, map[string]http.HandlerFunc{"create": create})
	}
	if err := e.addBindings(pods); err != nil {
		return err
	}
	nodes := e.config.Storage.Table(nodesResource)
	return e.addConnects(kind, map[string]*podConnect{
		"log":         newLog(pods, nodes, e.config.Kubelets),
		"exec":        newExec(pods, nodes, e.config.Kubelets),
		"attach":      newAttach(pods, nodes, e.config.Kubelets),
		"portforward": newPortForward(pods, nodes, e.config.Kubelets),
	})
}

func (e *Endpoints) addConnects(kind *resource.Any, connects map[string]*podConnect) error {
	for name, c := range connects {
		c.servers = e.config.Servers
		gvk, err := e.kindOf(c.options())
		if err != nil {
			return err
		}
		scope, err := e.scope(kind, name, gvk, c.pods, nil)
		if err != nil {
			return err
		}
		admit := e.config.Admission
		if c.create = e.config.Authorizer; name == "log" {
			admit, c.create = nil, nil // reading: upstream's log is a get, not a connection
		}
		h := once(func() http.HandlerFunc { return handlers.ConnectResource(c, scope, admit, name, true) })
		for _, method := range c.methods {
			verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create"}[method]
			e.add(kind, name, map[string]http.HandlerFunc{verb: h})
		}
	}
	return nil
}

// addProxy adds the proxy subresource to the kinds that have one.
func (e *Endpoints) addProxy(kind *resource.Any, store *Store) error {
	p := proxy.New(kind, proxy.Config{Storage: e.config.Storage, Kubelets: e.config.Kubelets, Pods: e.config.Pods,
		Authorizer: e.config.Authorizer})
	if p == nil {
		return nil
	}
	gvk, err := e.kindOf(p.New())
	if err != nil {
		return err
	}
	scope, err := e.scope(kind, "proxy", gvk, store, nil)
	h := once(func() http.HandlerFunc { return handlers.ConnectResource(p, scope, e.config.Admission, "proxy", true) })
	for _, verb := range proxy.Methods {
		e.add(kind, "proxy", map[string]http.HandlerFunc{verb: h})
	}
	return err
}

func (e *Endpoints) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	kinds, _, err := e.config.Scheme.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return kinds[0], nil
}

// scope is what upstream's handlers must know of an endpoint.
func (e *Endpoints) scope(kind *resource.Any, subresource string, gvk schema.GroupVersionKind,
	table rest.TableConvertor, reset *fieldpath.Set) (*handlers.RequestScope, error) {
	if e.custom != nil && subresource != "scale" {
		return e.customScope(subresource, table)
	}
	scheme := e.config.Scheme
	unsafe := runtime.UnsafeObjectConvertor(scheme)
	gv := kind.GroupVersionKind.GroupVersion()
	e.equivalents.RegisterKindFor(kind.GroupVersionResource(), subresource, gvk)
	fieldManager, err := k8smanagedfields.NewDefaultFieldManager(e.config.TypeConverter, fieldVersions{e.convertor},
		scheme, scheme, gvk, gvk.GroupVersion(), subresource, managedfields.ResetFilter(gv, reset))
	if err != nil {
		return nil, err
	}
	return &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: kind.ClusterScoped},
		Serializer: e.config.Codecs, ParameterCodec: runtime.NewParameterCodec(scheme),
		Creater: stack.Creater{ObjectCreater: scheme}, Convertor: e.convertor, Defaulter: scheme, Typer: scheme, UnsafeConvertor: unsafe,
		Authorizer:               e.config.Authorizer,
		EquivalentResourceMapper: e.equivalents,
		TableConvertor:           table,
		FieldManager:             fieldManager,
		Resource:                 kind.GroupVersionResource(),
		Kind:                     gvk,
		Subresource:              subresource,
		MetaGroupVersion:         metav1.SchemeGroupVersion,
		HubGroupVersion:          gvk.GroupVersion(),
		MaxRequestBodyBytes:      MaxBodyBytes,
	}, nil
}

// Store returns the storage of a kind, for the server's own objects.
func (e *Endpoints) Store(gvr schema.GroupVersionResource) *Store { return e.stores[gvr] }
