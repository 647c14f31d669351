package discovery

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	openapihandler "k8s.io/kube-openapi/pkg/handler"
	openapihandler3 "k8s.io/kube-openapi/pkg/handler3"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// documentFormat is part of the documents' hashes: raise it when their form changes
// without the kinds changing.
const documentFormat = "2"

// openAPI serves the schemas of one set of kinds.
type openAPI struct {
	// groups are the v3 documents by "api/v1", "apis/apps/v1", "apis/apps".
	groups map[string]*document
	// remotes are those that other servers answer, by the same names.
	remotes map[string]*Remote
	v2      *document
}

// newOpenAPI describes kinds and remotes; also are the paths of further documents.
func newOpenAPI(kinds []*resource.Any, remotes []Remote, also []string) *openAPI {
	o := &openAPI{groups: map[string]*document{}, remotes: map[string]*Remote{}}
	groups := groupsOf(kinds, nil, nil)
	same := strings.Join([]string{documentFormat, hashOf(modelsCompressed)}, "\n")
	var hashes []string
	for _, group := range groups {
		for _, v := range group.versions {
			gv := group.groupVersion(v)
			hash := hashOf([]byte(same + "\n" + fingerprint(v)))
			hashes = append(hashes, gv.String(), hash)
			o.groups[strings.TrimPrefix(pathOf(gv), "/")] = newDocument(hash,
				func() ([]byte, error) { return buildGroupV3(gv, v) }, openapihandler3.ToV3ProtoBinary)
		}
	}
	var index routes
	others := indexRoutes(groups, also)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		all := others[name]
		index = append(index, all...)
		hashes = append(hashes, name)
		o.groups[name] = newDocument(hashOf([]byte(same+"\n"+name)),
			func() ([]byte, error) { return buildIndexV3(all) }, openapihandler3.ToV3ProtoBinary)
	}
	for i := range remotes {
		r := &remotes[i]
		if r.Schema != nil {
			o.remotes[r.document()] = r
		}
		hashes = append(hashes, r.Name(), r.SchemaHash, hashOf(r.Swagger))
	}
	o.v2 = newDocument(hashOf([]byte(strings.Join(hashes, "\n"))),
		func() ([]byte, error) { return buildV2(kinds, index, remotes) }, openapihandler.ToProtoBinary)
	return o
}

// fingerprint changes whenever the documents of a group version do, without building them.
func fingerprint(v *groupVersion) string {
	g := group{versions: []*groupVersion{v}}
	text, err := json.Marshal(g.aggregated())
	if err != nil {
		panic("discovery: plain data cannot be encoded: " + err.Error())
	}
	for _, kind := range v.kinds {
		text = append(text, kind.SchemaID...)
	}
	return string(text)
}

// takeOver keeps the documents of another that say the same: they may be built already.
func (o *openAPI) takeOver(last *openAPI) {
	for name, d := range last.groups {
		if fresh, ok := o.groups[name]; ok && fresh.hash == d.hash {
			o.groups[name] = d
		}
	}
	if o.v2.hash == last.v2.hash {
		o.v2 = last.v2
	}
}

func (o *openAPI) paths() []string {
	paths := []string{"/openapi/v2", "/openapi/v3"}
	for name := range o.groups {
		paths = append(paths, "/openapi/v3/"+name)
	}
	slices.Sort(paths)
	return paths
}

// Media types of the documents. Clients of different age write the protobuf ones differently.
var (
	protobufV2 = []string{"com.github.proto-openapi.spec.v2.v1.0+protobuf", "com.github.proto-openapi.spec.v2@v1.0+protobuf"}
	protobufV3 = []string{"com.github.proto-openapi.spec.v3.v1.0+protobuf", "com.github.proto-openapi.spec.v3@v1.0+protobuf"}
)

func (o *openAPI) serve(w http.ResponseWriter, request *http.Request, path string) {
	switch path {
	case "/openapi/v2":
		serveDocument(w, request, o.v2, protobufV2)
		return
	case "/openapi/v3":
		o.serveIndex(w, request)
		return
	}
	o.serveGroup(w, request, strings.TrimPrefix(path, "/openapi/v3/"))
}

func (o *openAPI) serveGroup(w http.ResponseWriter, request *http.Request, name string) {
	if remote, ok := o.remotes[name]; ok {
		if isOf(w, request, name, remote.SchemaHash) {
			remote.Schema.ServeHTTP(w, request)
		}
		return
	}
	found, ok := o.groups[name]
	if !ok {
		http.NotFound(w, request)
		return
	}
	if isOf(w, request, name, found.hash) {
		serveDocument(w, request, found, protobufV3)
	}
}

// isOf reports whether the request is for this content; else the client is told where it is.
func isOf(w http.ResponseWriter, request *http.Request, name, content string) bool {
	hash := request.URL.Query().Get("hash")
	if hash != "" && hash != content {
		http.Redirect(w, request, relativeURL(name, content), http.StatusMovedPermanently)
		return false
	}
	if hash != "" {
		w.Header().Set("Cache-Control", "public, immutable, max-age=31536000")
	}
	return true
}

// relativeURL names a document and its content, so that clients may keep it for ever; without a hash they ask each time.
func relativeURL(name, hash string) string {
	if hash == "" {
		return "/openapi/v3/" + name
	}
	return "/openapi/v3/" + name + "?hash=" + url.QueryEscape(hash)
}

func (o *openAPI) serveIndex(w http.ResponseWriter, request *http.Request) {
	index := openapihandler3.OpenAPIV3Discovery{Paths: map[string]openapihandler3.OpenAPIV3DiscoveryGroupVersion{}}
	for name, d := range o.groups {
		index.Paths[name] = openapihandler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: relativeURL(name, d.hash)}
	}
	for name, r := range o.remotes {
		index.Paths[name] = openapihandler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: relativeURL(name, r.SchemaHash)}
	}
	etag := strconv.Quote(o.v2.hash)
	w.Header().Set("ETag", etag)
	if request.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeJSON(w, index)
}

// serveDocument answers in JSON or, when the client prefers it, protobuf.
func serveDocument(w http.ResponseWriter, request *http.Request, d *document, protobuf []string) {
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	binary, ok := wantsProtobuf(request.Header.Get("Accept"), protobuf)
	if !ok {
		http.Error(w, "application/json or application/"+protobuf[0], http.StatusNotAcceptable)
		return
	}
	contentType, form := "application/json", &d.json
	if binary {
		contentType, form = "application/"+protobuf[0], &d.protobuf
	}
	w.Header().Set("ETag", strconv.Quote(d.hash))
	if request.Header.Get("If-None-Match") == strconv.Quote(d.hash) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	compressed, err := form.get()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	writeCompressed(w, request, compressed)
}

func wantsProtobuf(accept string, protobuf []string) (binary, ok bool) {
	if accept == "" {
		return false, true
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		if clause.Type != "application" && clause.Type != "*" {
			continue
		}
		if clause.SubType == "json" || clause.SubType == "*" {
			return false, true
		}
		if slices.Contains(protobuf, clause.SubType) {
			return true, true
		}
	}
	return false, false
}
