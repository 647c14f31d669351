package everykind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"
)

// Namespace is where the objects are that have one.
const Namespace = "every-kind"

// nobody is a scheduler that there is not: no pod of an object is placed.
const nobody = "nobody"

// plenty is what a quota leaves to all other objects.
const plenty = "1000000"

// Stored are objects by their paths, without what may change.
type Stored map[string]string

// Store stores an object of each kind that is served. root is the folder of the repository.
func Store(ctx context.Context, client discovery.DiscoveryInterface, root string) (Stored, error) {
	space := []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + Namespace + `"}}`)
	if err := client.RESTClient().Post().AbsPath("/api/v1/namespaces").Body(space).Do(ctx).Error(); err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	stored, errs := Stored{}, []error{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "create") || !slices.Contains(r.Verbs, "get") {
				continue // what is asked and not stored, as reviews
			}
			version, err := schema.ParseGroupVersion(list.GroupVersion)
			if err == nil {
				err = stored.one(ctx, client, root, version, r)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s of %s: %w", r.Name, list.GroupVersion, err))
			}
		}
	}
	return stored, errors.Join(errs...)
}

// one stores the first case of a kind that the cluster takes.
func (s Stored) one(
	ctx context.Context, client discovery.DiscoveryInterface, root string, version schema.GroupVersion, r metav1.APIResource,
) error {
	cases, err := casesOf(root, version, r)
	if err != nil {
		return err
	}
	errs := []error{}
	for _, object := range cases {
		path := collection(version, r)
		err := client.RESTClient().Post().AbsPath(path).Body(object.body()).Do(ctx).Error()
		if err != nil && !apierrors.IsAlreadyExists(err) { // or a controller has made it, because of another object
			errs = append(errs, err)
			continue
		}
		path += "/" + object.GetName()
		s[path] = ""
		return nil
	}
	return fmt.Errorf("none of %d cases is taken: %w", len(cases), errors.Join(errs...))
}

func collection(version schema.GroupVersion, r metav1.APIResource) string {
	path := "/apis/" + version.String()
	if version.Group == "" {
		path = "/api/" + version.Version
	}
	if r.Namespaced {
		path += "/namespaces/" + Namespace
	}
	return path + "/" + r.Name
}

// Look notes what the objects are now.
func (s Stored) Look(ctx context.Context, client discovery.DiscoveryInterface) error {
	for path := range s {
		text, err := read(ctx, client, path)
		if err != nil {
			return err
		}
		s[path] = text
	}
	return nil
}

// Changed says of each object that is not what it was when it was looked at.
func (s Stored) Changed(ctx context.Context, client discovery.DiscoveryInterface) (changes []string) {
	for path, was := range s {
		is, err := read(ctx, client, path)
		if err != nil {
			is = err.Error()
		}
		if is != was {
			changes = append(changes, fmt.Sprintf("%s was\n%s\nand is\n%s", path, was, is))
		}
	}
	slices.Sort(changes)
	return changes
}

// Remove deletes the objects: a default class, or a Node that is no machine, is in nobody's way then.
func (s Stored) Remove(ctx context.Context, client discovery.DiscoveryInterface) error {
	var errs []error
	for path := range s {
		if err := client.RESTClient().Delete().AbsPath(path).Do(ctx).Error(); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// read is an object without what may change.
func read(ctx context.Context, client discovery.DiscoveryInterface, path string) (string, error) {
	text, err := client.RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	object := unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		return "", err
	}
	for _, field := range [][]string{
		{"status"}, {"metadata", "resourceVersion"}, {"metadata", "managedFields"}, {"metadata", "generation"},
	} {
		unstructured.RemoveNestedField(object.Object, field...)
	}
	if object.GetKind() == "Node" {
		unstructured.RemoveNestedField(object.Object, "spec", "taints") // it is no machine, so it is tainted
	}
	return string(testCase{object}.body()), nil
}

// testCase is an object of a kind's own tests.
type testCase struct{ unstructured.Unstructured }

func (c testCase) body() []byte {
	text, err := json.Marshal(c.Object)
	if err != nil {
		panic(err) // it was JSON or YAML before
	}
	return text
}

// casesOf are the objects of a kind's own tests, and those of this package where none of them is taken; an object with a name alone if
// there are none.
func casesOf(root string, version schema.GroupVersion, r metav1.APIResource) (cases []testCase, err error) {
	folder := schema.GroupResource{Group: version.Group, Resource: r.Name}.String()
	files, err := filepath.Glob(filepath.Join(root, "apiserver/kinds/*/testdata", folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range append(files, filepath.Join(root, "test/everykind/testdata", folder+".yaml")) {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		first, _, _ := bytes.Cut(text, []byte("\n---\n"))
		object := testCase{}
		if err := yaml.Unmarshal(first, &object.Object); err != nil {
			return nil, err
		}
		cases = append(cases, object)
	}
	if len(cases) == 0 {
		cases = []testCase{{unstructured.Unstructured{Object: map[string]any{}}}}
	}
	for _, object := range cases {
		object.settle(version, r)
	}
	return cases, nil
}

// settle makes the case an object of its own, which begins nothing.
func (c testCase) settle(version schema.GroupVersion, r metav1.APIResource) {
	c.SetGroupVersionKind(version.WithKind(r.Kind))
	c.SetResourceVersion("")
	c.SetUID("")
	c.SetOwnerReferences(nil)
	c.SetDeletionTimestamp(nil)
	c.SetFinalizers(nil)
	if c.SetNamespace(""); r.Namespaced {
		c.SetNamespace(Namespace)
	}
	if c.GetName() == "" {
		c.SetName("every-kind")
	}
	unstructured.RemoveNestedField(c.Object, "status")
	for _, pod := range [][]string{{"spec"}, {"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}} {
		if _, found, _ := unstructured.NestedSlice(c.Object, append(slices.Clone(pod), "containers")...); found {
			_ = unstructured.SetNestedField(c.Object, nobody, append(slices.Clone(pod), "schedulerName")...)
			unstructured.RemoveNestedField(c.Object, append(slices.Clone(pod), "nodeName")...)
		}
	}
	webhooks, _, _ := unstructured.NestedSlice(c.Object, "webhooks")
	for _, webhook := range webhooks {
		webhook.(map[string]any)["objectSelector"] = map[string]any{"matchLabels": map[string]any{"asks": nobody}}
	}
	if len(webhooks) > 0 {
		_ = unstructured.SetNestedSlice(c.Object, webhooks, "webhooks")
	}
	hard, _, _ := unstructured.NestedMap(c.Object, "spec", "hard")
	for what := range hard {
		hard[what] = plenty
	}
	if len(hard) > 0 {
		_ = unstructured.SetNestedMap(c.Object, hard, "spec", "hard")
	}
	if r.Kind == "CronJob" {
		_ = unstructured.SetNestedField(c.Object, true, "spec", "suspend")
	}
}
