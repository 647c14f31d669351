package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	fileMax   = 4 << 20
	yamlChunk = 4096
)

var manifest = regexp.MustCompile(`\.(ya?ml|json)$`)

// document is an object of a file.
type document struct {
	file   string
	object *unstructured.Unstructured
	text   []byte // as JSON
}

// read finds the objects in a folder, each once. What templates make of them is not known; files that are none are passed over.
func read(folder string) (all []document) {
	seen := map[string]bool{}
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !manifest.MatchString(path) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) > fileMax || !bytes.Contains(text, []byte("apiVersion")) || bytes.Contains(text, []byte("{{")) {
			return nil
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), yamlChunk)
		for {
			var object map[string]any
			if decoder.Decode(&object) != nil {
				return nil
			}
			for _, d := range documents(strings.TrimPrefix(path, folder), object) {
				if !seen[string(d.text)] {
					seen[string(d.text)], all = true, append(all, d)
				}
			}
		}
	})
	return all
}

// documents are an object, or those of a List.
func documents(file string, object map[string]any) (all []document) {
	kind, _ := object["kind"].(string)
	if version, _ := object["apiVersion"].(string); kind == "" || version == "" {
		return nil
	}
	if items, _ := object["items"].([]any); kind == "List" {
		for _, item := range items {
			if object, ok := item.(map[string]any); ok {
				all = append(all, documents(file, object)...)
			}
		}
		return all
	}
	text, err := json.Marshal(object)
	u := &unstructured.Unstructured{}
	if err != nil || json.Unmarshal(text, &u.Object) != nil {
		return nil
	}
	return []document{{file, u, text}}
}
