package definitions

import (
	"bytes"
	_ "embed"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// BundleVersion is the annotation that names the version of the Gateway API; its authors put it there.
const BundleVersion = "gateway.networking.k8s.io/bundle-version"

//go:embed zz_generated_definitions.json
var bundle []byte

// All returns the definitions.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for decoder := json.NewDecoder(bytes.NewReader(bundle)); decoder.More(); {
		one := &apiextensionsv1.CustomResourceDefinition{}
		if err := decoder.Decode(one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
