package discovery

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// read is a route that tells what this server is or offers.
func read(path, operation, description string, m model, produces []string) *route {
	return &route{method: http.MethodGet, path: path + "/", operation: operation, description: description,
		consumes: produces, produces: produces, answers: ok(m)}
}

// readText is read for what is no object.
func readText(path, operation, description, contentType string) *route {
	r := read(path, operation, description, modelText, []string{contentType})
	r.consumes = nil
	return r
}

// resourcesRoute tells the resources of a group version.
func resourcesRoute(gv schema.GroupVersion) *route {
	return read(
		pathOf(gv),
		"getAPIResources",
		"get available resources",
		model(metav1.APIResourceList{}.OpenAPIModelName()),
		objectTypes(false),
	)
}

// indexRoutes are the documents beside those of group versions, by the names of their OpenAPI
// documents: what there is, and of which version. also are the paths of further documents.
func indexRoutes(groups []*group, also []string) map[string]routes {
	const versions = "get available API versions"
	types := objectTypes(false)
	all := map[string]routes{
		"apis": {read("/apis", "getAPIVersions", versions, model(metav1.APIGroupList{}.OpenAPIModelName()), types)},
		"version": {
			read(
				"/version",
				"getCodeVersion",
				"get the version information for this server",
				model(version.Info{}.OpenAPIModelName()),
				[]string{"application/json"},
			),
		},
	}
	for _, g := range groups {
		switch {
		case g.name == "":
			all["api"] = routes{read("/api", "getAPIVersions", versions, model(metav1.APIVersions{}.OpenAPIModelName()), types)}
		case g.builtIn():
			all["apis/"+g.name] = routes{
				read("/apis/"+g.name, "getAPIGroup", "get information of a group", model(metav1.APIGroup{}.OpenAPIModelName()), types),
			}
		}
	}
	for _, path := range also {
		switch path {
		case "/.well-known/openid-configuration":
			all[strings.TrimPrefix(path, "/")] = routes{readText(path, "getServiceAccountIssuerOpenIDConfiguration",
				"get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'", "application/json")}
		case "/openid/v1/jwks":
			all[strings.TrimPrefix(path, "/")] = routes{readText(path, "getServiceAccountIssuerOpenIDKeyset",
				"get service account issuer OpenID JSON Web Key Set (contains public token verification keys)", "application/jwk-set+json")}
		}
	}
	return all
}
