package aggregation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	openapihandler3 "k8s.io/kube-openapi/pkg/handler3"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
)

// fetchSchemas asks for the OpenAPI documents. A server need not have any, so what
// cannot be had now stays as it was.
func (b *backend) fetchSchemas(ctx context.Context, last *schemas) schemas {
	next := *last
	if a, err := b.get(ctx, schemaTimeout, "/openapi/v3", runtime.ContentTypeJSON, ""); err == nil {
		next.readIndex(a)
	}
	if a, err := b.get(ctx, schemaTimeout, "/openapi/v2", runtime.ContentTypeJSON, last.swaggerETag); err == nil &&
		a.status == http.StatusOK &&
		json.Valid(a.body) {
		next.swagger, next.swaggerETag = a.body, tagOf(a)
		next.converted = discovery.ConvertedSchema(next.swaggerETag, a.body)
	}
	return next
}

// schemaOf answers requests for the v3 document of a group version, with its hash: the server's own, or, of a server without v3
// documents, its v2 document. It is nil where there is neither.
func (b *backend) schemaOf(gv schema.GroupVersion, s *schemas) (answers http.Handler, hash string) {
	hash, there := s.hashes["apis/"+gv.String()]
	switch {
	case there:
		return b.schemaHandler(), hash
	case s.legacy && s.converted != nil:
		return s.converted, s.swaggerETag
	}
	return nil, ""
}

// tagOf is the server's own, or a hash where it sends none.
func tagOf(a *answer) string {
	if a.etag != "" {
		return a.etag
	}
	sum := sha256.Sum256(a.body)
	return hex.EncodeToString(sum[:])
}

// readIndex reads which v3 documents the server has. What cannot be understood changes nothing.
func (s *schemas) readIndex(a *answer) {
	var index openapihandler3.OpenAPIV3Discovery
	switch {
	case a.status == http.StatusNotFound:
		s.hashes, s.legacy = nil, true
	case a.status == http.StatusOK && json.Unmarshal(a.body, &index) == nil:
		s.hashes, s.legacy = hashesIn(&index), false
	}
}

func hashesIn(index *openapihandler3.OpenAPIV3Discovery) map[string]string {
	hashes := map[string]string{}
	for path, document := range index.Paths {
		if to, err := url.Parse(document.ServerRelativeURL); err == nil {
			hashes[path] = to.Query().Get("hash")
		}
	}
	return hashes
}

// schemaHandler passes requests for the server's OpenAPI v3 documents on. Everybody
// may read those, so it asks under its own name.
func (b *backend) schemaHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := b.get(r.Context(), schemaTimeout, r.URL.Path, r.Header.Get("Accept"), r.Header.Get("If-None-Match"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", a.contentType)
		if a.etag != "" {
			w.Header().Set("ETag", a.etag)
		}
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body) // a client that went away needs no answer
	})
}
