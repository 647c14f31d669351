package optional

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// readVersioned reads a Configuration of this version into one that has meta among its fields. No text leaves it as it is.
func readVersioned(text []byte, version string, meta *metav1.TypeMeta, into any) error {
	if len(text) == 0 {
		return nil
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return err
	}
	if meta.APIVersion != version || meta.Kind != "Configuration" {
		return fmt.Errorf("expected a Configuration of %s, got %s of %s", version, meta.Kind, meta.APIVersion)
	}
	return nil
}
