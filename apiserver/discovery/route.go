package discovery

import (
	"github.com/emicklei/go-restful/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/common"
)

// route is one request that the API understands, in the form that upstream's builders of
// OpenAPI documents ask for: they find out what the routes of a path have in common.
type route struct {
	method, path string
	// operation begins with the verb: builders put the group version behind it. Client
	// generators make function names of the result.
	operation, description string
	// action is Kubernetes' word for it: list, post, get, put, patch, delete,
	// deletecollection, watch, watchlist, connect; empty where no kind is concerned.
	action             string
	gvk                schema.GroupVersionKind
	parameters         []parameter
	consumes, produces []string
	// body is a model; empty: there is none.
	body    model
	answers []answer
}

var _ common.Route = (*route)(nil)

func (r *route) Method() string             { return r.method }
func (r *route) Path() string               { return r.path }
func (r *route) OperationName() string      { return r.operation }
func (r *route) Description() string        { return r.description }
func (r *route) Consumes() []string         { return r.consumes }
func (r *route) Produces() []string         { return r.produces }
func (r *route) RequestPayloadSample() any  { return r.body }
func (r *route) ResponsePayloadSample() any { return nil }
func (r *route) Parameters() (all []common.Parameter) {
	for _, p := range r.parameters {
		all = append(all, p)
	}
	return all
}

// Metadata are the extensions of an operation.
func (r *route) Metadata() map[string]any {
	if r.action == "" {
		return nil
	}
	return map[string]any{extensionAction: r.action, extensionKind: metav1.GroupVersionKind(r.gvk)}
}

// StatusCodeResponses implements common.Route.
func (r *route) StatusCodeResponses() (all []common.StatusCodeResponse) {
	for _, a := range r.answers {
		all = append(all, a)
	}
	return all
}

// models are what the route refers to.
func (r *route) models() []model {
	all := []model{r.body}
	for _, a := range r.answers {
		all = append(all, a.model)
	}
	return all
}

// model is the name of a schema, or of a plain type.
type model string

const modelText model = "string"

// OpenAPICanonicalTypeName implements util.OpenAPICanonicalTypeNamer.
func (m model) OpenAPICanonicalTypeName() string { return string(m) }

// answer is one way in which a request can succeed.
type answer struct {
	code    int
	message string
	model   model
}

func (a answer) Code() int       { return a.code }
func (a answer) Message() string { return a.message }
func (a answer) Model() any      { return a.model }

// parameter is one parameter of a route.
type parameter struct {
	name, kind, description string
	in                      common.ParameterKind
	optional                bool
}

func (p parameter) Name() string               { return p.name }
func (p parameter) Description() string        { return p.description }
func (p parameter) Required() bool             { return !p.optional }
func (p parameter) Kind() common.ParameterKind { return p.in }
func (p parameter) DataType() string           { return p.kind }
func (p parameter) AllowMultiple() bool        { return false }

// routes are those of one document.
type routes []*route

var _ common.RouteContainer = routes{}

func (r routes) RootPath() string                   { return "/" }
func (r routes) PathParameters() []common.Parameter { return nil }
func (r routes) Routes() (all []common.Route) {
	for _, route := range r {
		all = append(all, route)
	}
	return all
}

// definitions are the names that the builders have to know; the schemas themselves are put
// in afterwards.
func (r routes) definitions() map[string]common.OpenAPIDefinition {
	all := map[string]common.OpenAPIDefinition{}
	for _, route := range r {
		for _, m := range route.models() {
			all[string(m)] = common.OpenAPIDefinition{}
		}
	}
	return all
}

// operationOf is upstream's id of an operation, as in "readAppsV1NamespacedDeployment", and
// the tag under which documentation shows it.
func operationOf(r common.Route) (id string, tags []string, err error) {
	return openapi.GetOperationIDAndTags(&restful.Route{Operation: r.OperationName(), Path: r.Path()})
}
