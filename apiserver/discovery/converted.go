package discovery

import (
	"encoding/json"
	"net/http"

	openapihandler3 "k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// ConvertedSchema answers requests for the OpenAPI v3 document of a server that has a v2 document alone, which is in JSON. It is the
// whole v2 document, converted as upstream's aggregator converts it, once somebody asks for it. hash is that of its content.
func ConvertedSchema(hash string, swagger []byte) http.Handler {
	d := newDocument(hash, func() ([]byte, error) { return convertSwagger(swagger) }, openapihandler3.ToV3ProtoBinary)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serveDocument(w, r, d, protobufV3) })
}

func convertSwagger(swagger []byte) ([]byte, error) {
	var document spec.Swagger
	if err := json.Unmarshal(swagger, &document); err != nil {
		return nil, err
	}
	if document.Paths != nil {
		for _, item := range document.Paths.Paths {
			withResponses(item.Get, item.Put, item.Post, item.Delete, item.Options, item.Head, item.Patch)
		}
	}
	return json.Marshal(openapiconv.ConvertV2ToV3(&document))
}

// withResponses gives empty responses to operations without any, which no valid document has and the conversion does not expect.
func withResponses(operations ...*spec.Operation) {
	for _, o := range operations {
		if o != nil && o.Responses == nil {
			o.Responses = &spec.Responses{}
		}
	}
}
