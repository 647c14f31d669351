package discovery_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
)

// TestServedKinds walks the real list: a kind without models is one whose group version is
// missing in openapigen/dump.
func TestServedKinds(t *testing.T) {
	converter, err := discovery.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds.All() {
		obj := kind.New()
		obj.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
		if _, err := converter.ObjectToTyped(obj); err != nil {
			t.Errorf("%s: %v", kind.GroupVersionKind, err)
		}
	}
}

func TestServedDocuments(t *testing.T) {
	handler, err := discovery.New(discovery.Config{Kinds: kinds.All()})
	if err != nil {
		t.Fatal(err)
	}
	var root struct{ Paths []string }
	if err := json.Unmarshal([]byte(body(t, get(t, handler, "/"))), &root); err != nil {
		t.Fatal(err)
	}
	for _, path := range root.Paths {
		response := get(t, handler, path)
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, response.Status)
			continue
		}
		if !strings.HasPrefix(path, "/openapi/") || path == "/openapi/v3" {
			continue
		}
		var document any
		text := body(t, response)
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if strings.Contains(text, `schemas/"`) || strings.Contains(text, `definitions/"`) {
			t.Errorf("%s: an empty reference", path)
		}
		checkReferences(t, path, document, document)
	}
}
