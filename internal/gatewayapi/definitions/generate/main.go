// Command generate writes the definitions of the Gateway API that the cluster brings along, from the module in go.mod.
//
// It is run by go generate in the folder above. A second run changes nothing.
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// kinds are those that are served.
var kinds = []string{
	"backendtlspolicies", "gatewayclasses", "gateways", "grpcroutes", "httproutes", "listenersets", "referencegrants", "tlsroutes",
}

const written = "zz_generated_definitions.json"

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, kind := range kinds {
		file := filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard", "gateway.networking.k8s.io_"+kind+".yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var definition any
		if err := yaml.Unmarshal(text, &definition); err != nil {
			return err
		}
		shorten(definition)
		if err := encoder.Encode(definition); err != nil {
			return err
		}
	}
	return os.WriteFile(written, out.Bytes(), 0o644)
}

// shorten leaves the first paragraph of each description.
func shorten(v any) {
	switch v := v.(type) {
	case map[string]any:
		if text, ok := v["description"].(string); ok {
			first, _, _ := strings.Cut(text, "\n\n")
			v["description"] = strings.Join(strings.Fields(first), " ")
		}
		for _, each := range v {
			shorten(each)
		}
	case []any:
		for _, each := range v {
			shorten(each)
		}
	}
}
