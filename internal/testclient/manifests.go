package testclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// manifestBuffer is how far ahead YAML and JSON are told apart.
const manifestBuffer = 4096

// read reads a file, a folder, or YAML itself.
func read(manifest string) ([]*unstructured.Unstructured, error) {
	if strings.Contains(manifest, "\n") || strings.HasPrefix(strings.TrimSpace(manifest), "{") {
		return decode(strings.NewReader(manifest), "the YAML")
	}
	files, err := filesOf(manifest)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := decode(bytes.NewReader(text), file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// filesOf are the manifests of a folder, without those of folders in it, or the file itself.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		here, _ := os.Getwd()
		return nil, fmt.Errorf("there is no file or folder %q: paths are relative to the folder of the test, %s", path, here)
	}
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	var files, folders []string
	for _, entry := range entries {
		switch {
		case entry.IsDir():
			folders = append(folders, entry.Name())
		case isManifest(entry.Name()):
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the folder %q has no manifest, a .yaml, .yml or .json file that is not kustomize's: its folders, which are not read, are %q", path, folders)
	}
	return files, err
}

// isManifest tells manifests by their names. What kubebuilder puts beside them for kustomize is none.
func isManifest(name string) bool {
	switch extension := filepath.Ext(name); extension {
	case ".yaml", ".yml", ".json":
		base := strings.TrimSuffix(name, extension)
		return base != "kustomization" && base != "kustomizeconfig"
	}
	return false
}

// decode reads documents; a List is its items.
func decode(from io.Reader, name string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(from, manifestBuffer)
	var all []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(object.Object) == 0 {
			continue // between two separators
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" {
			return nil, fmt.Errorf("%s: an object without apiVersion or kind", name)
		}
		if !object.IsList() {
			all = append(all, object)
			continue
		}
		err = object.EachListItem(func(item runtime.Object) error {
			all = append(all, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
}

// asUnstructured converts a typed object; kinds of client-go need not say what they are.
func asUnstructured(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetKind() != "" {
		return u, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, fmt.Errorf("set its TypeMeta, only the kinds of client-go need none: %w", err)
	}
	u.SetGroupVersionKind(kinds[0])
	return u, nil
}
