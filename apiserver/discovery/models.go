package discovery

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// modelsCompressed is one JSON object, model name to schema, as openapigen writes it.
//
//go:embed models.json.gz
var modelsCompressed []byte

// Models returns the OpenAPI v3 schemas of the published types by model name
// ("io.k8s.api.apps.v1.Deployment"); top-level kinds carry the extension
// x-kubernetes-group-version-kind. Each call decodes afresh (about 10 ms, 5 MB): the
// result is the caller's, and nothing is kept.
func Models() (map[string]*spec.Schema, error) {
	reader, err := gzip.NewReader(bytes.NewReader(modelsCompressed))
	if err != nil {
		return nil, fmt.Errorf("openapi models: %w", err)
	}
	models := map[string]*spec.Schema{}
	if err := json.NewDecoder(reader).Decode(&models); err != nil {
		return nil, fmt.Errorf("openapi models: %w", err)
	}
	return models, nil
}

// MetadataModels returns the models of object metadata and what they refer to. They
// are made at the first call and shared: do not change them.
func MetadataModels() (map[string]*spec.Schema, error) { return metadataModels() }

var metadataModels = sync.OnceValues(func() (map[string]*spec.Schema, error) {
	models, err := Models()
	if err != nil {
		return nil, err
	}
	return reachable(routes{{body: model(metav1.ObjectMeta{}.OpenAPIModelName())}}, models), nil
})

// TypeConverter returns the converter with which server-side apply understands the
// published types. It is made at the first call and shared; it is safe for concurrent use.
func TypeConverter() (managedfields.TypeConverter, error) { return typeConverter() }

var typeConverter = sync.OnceValues(func() (managedfields.TypeConverter, error) {
	models, err := Models()
	if err != nil {
		return nil, err
	}
	converter, err := managedfields.NewTypeConverter(models, false)
	return fallible{converter}, err
})
