package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// aggregatedKind is what a client asks for that reads all groups at once.
var aggregatedKind = apidiscoveryv2.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")

// newCodecs knows the discovery types and nothing else: JSON, YAML and protobuf.
func newCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	utilruntime.Must(apidiscoveryv2.AddToScheme(scheme))
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{},
		&metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return serializer.NewCodecFactory(scheme)
}

// onlyAggregated allows a client to ask for the aggregated form, where it exists.
type onlyAggregated struct {
	negotiation.EndpointRestrictions
}

func (onlyAggregated) AllowsMediaTypeTransform(_, _ string, kind *schema.GroupVersionKind) bool {
	return kind == nil || *kind == aggregatedKind
}

// notFound answers as upstream: a version that a served group does not have with a Status, anything else in text.
func (d *documents) notFound(w http.ResponseWriter, request *http.Request, at string) {
	parent := path.Dir(at)
	if _, served := d.legacy[parent]; !served || parent == "/apis" {
		http.NotFound(w, request)
		return
	}
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, false)
	responsewriters.ErrorNegotiated(err, d.codecs, schema.GroupVersion{Version: "v1"}, w, request)
}

// serve hands the encoder copies: it sets the kind in what it encodes.
func (d *documents) serve(w http.ResponseWriter, request *http.Request, at string) {
	if at == "/api" && d.serveAggregated(w, request, d.core, d.coreETag) ||
		at == "/apis" && d.serveAggregated(w, request, d.groups, d.groupsETag) {
		return
	}
	document, ok := d.legacy[at]
	if !ok {
		d.notFound(w, request, at)
		return
	}
	w.Header().Set("Cache-Control", "no-cache, private")
	responsewriters.WriteObjectNegotiated(d.codecs, negotiation.DefaultEndpointRestrictions, schema.GroupVersion{},
		w, request, http.StatusOK, document.DeepCopyObject(), false)
}

// serveAggregated answers clients that ask for the aggregated form, and reports whether this one did.
func (d *documents) serveAggregated(
	w http.ResponseWriter,
	request *http.Request,
	list *apidiscoveryv2.APIGroupDiscoveryList,
	etag string,
) bool {
	restrictions := onlyAggregated{negotiation.DefaultEndpointRestrictions}
	w.Header().Set("Vary", "Accept")
	mediaType, ok := negotiation.NegotiateMediaTypeOptions(request.Header.Get("Accept"), d.codecs.SupportedMediaTypes(), restrictions)
	if !ok || mediaType.Convert == nil {
		return false
	}
	w.Header().Set("ETag", etag)
	w.Header().Set("Cache-Control", "public")
	if request.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	responsewriters.WriteObjectNegotiated(d.codecs, restrictions, apidiscoveryv2.SchemeGroupVersion,
		w, request, http.StatusOK, list.DeepCopy(), true)
	return true
}

// etagOf is a quoted hash of a document's JSON: equal on all servers that offer the same.
func etagOf(document any) (string, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("discovery document: %w", err)
	}
	return strconv.Quote(hashOf(text)), nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
