package setpointtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	fieldManager = "setpointtest"
	// manifestBuffer is how far ahead YAML and JSON are told apart.
	manifestBuffer = 4096
	// unknownRepeats bounds how often Apply and Delete repeat a write whose effect is not known.
	unknownRepeats = 3
)

// Apply applies manifests with server-side apply: files, folders, or YAML itself. Objects without a namespace go to
// that of the view. A kind whose CRD is among them may take a moment.
func (c *Cluster) Apply(manifests ...string) {
	c.t.Helper()
	c.alive()
	for _, manifest := range manifests {
		objects, err := read(manifest)
		if err != nil {
			c.t.Fatalf("setpointtest: Apply: %v", err)
		}
		for _, object := range objects {
			if err := c.apply(object); err != nil {
				c.t.Fatalf("setpointtest: Apply: %s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
}

// ApplyObject applies one object. One that client-go or controller-runtime has made needs no kind.
func (c *Cluster) ApplyObject(object runtime.Object) {
	c.t.Helper()
	c.alive()
	content, err := asUnstructured(object)
	if err == nil {
		err = c.apply(content)
	}
	if err != nil {
		c.t.Fatalf("setpointtest: ApplyObject: %v", err)
	}
}

// Delete deletes objects, with their dependents in the background. It does not wait; Eventually with Gone does.
func (c *Cluster) Delete(targets ...string) {
	c.t.Helper()
	c.alive()
	for _, target := range targets {
		client, name, err := c.target(target)
		if err == nil {
			err = untilKnown(func(again bool) error {
				err := client.Delete(c.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
				if again && apierrors.IsNotFound(err) {
					return nil // the first one did it
				}
				return err
			})
		}
		if err != nil {
			c.t.Fatalf("setpointtest: Delete %s: %v", target, err)
		}
	}
}

// Get returns an object, or nil if there is none.
func (c *Cluster) Get(target string) *unstructured.Unstructured {
	c.t.Helper()
	c.alive()
	object, _, _ := c.look(target, nil)
	return object
}

func (c *Cluster) apply(object *unstructured.Unstructured) error {
	mapping, err := c.mappingOf(object)
	if err != nil {
		return err
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = c.namespace
	}
	client, err := c.resource(mapping, namespace)
	if err != nil {
		return err
	}
	ctx := c.t.Context()
	if object.GetName() == "" {
		_, err = client.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	}
	return untilKnown(func(bool) error {
		_, err := client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return err
	})
}

// untilKnown repeats a write that is the same when it is done twice, while the answer is that it may or may not have taken
// effect: the leader crashed below it. A crash takes seconds, so few repeats are enough; the server's answer ends a chain of them.
func untilKnown(write func(again bool) error) error {
	err := write(false)
	for repeat := 0; repeat < unknownRepeats && apierrors.IsTimeout(err); repeat++ {
		err = write(true)
	}
	return err
}

// mappingOf waits a moment for kinds that are being defined.
func (c *Cluster) mappingOf(object *unstructured.Unstructured) (*meta.RESTMapping, error) {
	gvk := object.GroupVersionKind()
	for deadline := time.Now().Add(establishLimit); ; time.Sleep(pollMin) {
		mapping, err := c.kinds.find(c.asAdmin(), func(m meta.RESTMapper) (*meta.RESTMapping, error) {
			return m.RESTMapping(gvk.GroupKind(), gvk.Version)
		})
		if meta.IsNoMatchError(err) && time.Now().Before(deadline) && c.defines(gvk.Group, gvk.Kind) {
			continue
		}
		if meta.IsNoMatchError(err) {
			return nil, c.unserved(gvk)
		}
		return mapping, err
	}
}

// unserved says what of a kind is not served: all of it, or this version.
func (w *world) unserved(gvk schema.GroupVersionKind) error {
	other, err := w.kinds.find(w.asAdmin(), func(m meta.RESTMapper) (*meta.RESTMapping, error) { return m.RESTMapping(gvk.GroupKind()) })
	if err != nil {
		return &unknownKindError{gvk.GroupKind().String()}
	}
	return fmt.Errorf("the cluster does not serve version %s of it: write apiVersion: %s", gvk.Version, other.GroupVersionKind.GroupVersion())
}

// defines reports whether a CRD defines the kind.
func (c *Cluster) defines(group, kind string) bool {
	client, err := c.definitions()
	if err != nil {
		return false
	}
	all, err := client.List(c.t.Context(), metav1.ListOptions{})
	return err == nil && slices.ContainsFunc(all.Items, func(d unstructured.Unstructured) bool {
		of, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		named, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		return of == group && named == kind
	})
}

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
	var files []string
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".yaml", ".yml", ".json":
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the folder %q has no .yaml, .yml or .json file", path)
	}
	return files, err
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

// await calls check until it says true.
func await(ctx context.Context, limit time.Duration, check func() (bool, error)) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(pollMin) {
		done, err := check()
		if done || err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not after %v", limit)
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
