package testclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// manifestBuffer is how far ahead YAML and JSON are told apart.
	manifestBuffer = 4096
	// kustomizeGroup has objects that kustomize reads, and that no cluster serves.
	kustomizeGroup = "kustomize.config.k8s.io"
)

var errNothing = errors.New("there is no manifest, an object in a .yaml, .yml or .json file that is not for kustomize,")

// read reads a file, a folder, or YAML itself.
func read(manifest string) ([]*unstructured.Unstructured, error) {
	if strings.Contains(manifest, "\n") || strings.HasPrefix(strings.TrimSpace(manifest), "{") {
		return decode(strings.NewReader(manifest), "the YAML")
	}
	files, folders, err := filesOf(manifest)
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
	if len(all) == 0 {
		return nil, nothingIn(manifest, folders)
	}
	return all, nil
}

func nothingIn(path string, folders []string) error {
	if len(folders) == 0 {
		return fmt.Errorf("%w in %q", errNothing, path)
	}
	return fmt.Errorf("%w in %q: its folders, which are not read, are %q", errNothing, path, folders)
}

// filesOf are the manifests of a folder, and the folders in it, or the file itself.
func filesOf(path string) (files, folders []string, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		here, _ := os.Getwd()
		return nil, nil, fmt.Errorf("there is no file or folder %q: paths are relative to the folder of the test, %s", path, here)
	}
	if err != nil || !info.IsDir() {
		return []string{path}, nil, err
	}
	entries, err := os.ReadDir(path)
	for _, entry := range entries {
		switch {
		case entry.IsDir():
			folders = append(folders, entry.Name())
		case isManifest(entry.Name()):
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, folders, err
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// isKustomize tells what kubebuilder puts beside manifests for kustomize, which needs neither apiVersion nor kind in files of its own.
// Flux has Kustomizations too: the name of a file alone says nothing.
func isKustomize(object *unstructured.Unstructured, file string) bool {
	if object.GroupVersionKind().Group == kustomizeGroup {
		return true
	}
	base := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	own := base == "kustomization" || base == "kustomizeconfig"
	return own && object.GetAPIVersion() == "" && (object.GetKind() == "" || object.GetKind() == "Kustomization")
}

// decode reads documents; a List is its items, and what is for kustomize is passed over.
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
		if len(object.Object) == 0 || isKustomize(object, name) {
			continue // nothing between two separators, or nothing for a cluster
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
