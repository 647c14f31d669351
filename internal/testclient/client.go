package testclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// unknownRepeats bounds how often Apply and Delete repeat a write whose effect is not known.
const unknownRepeats = 3

// Client is what a test asks of a cluster, as a user and in a namespace.
type Client struct {
	// Admin finds kinds and definitions, Viewed is for the objects.
	Admin, Viewed *rest.Config
	// Manager is the field manager of what is applied.
	Manager   string
	Namespace string
	Kinds     *Kinds
	// Timeout is how long Eventually and Never wait.
	Timeout time.Duration
	// Why is what the control plane says about an object, a line each.
	Why func(ctx context.Context, kind, namespace, name string) ([]string, error)
}

// Apply applies manifests with server-side apply: files, folders, or YAML itself.
func (c *Client) Apply(ctx context.Context, manifests ...string) error {
	for _, manifest := range manifests {
		objects, err := read(manifest)
		if err != nil {
			return fmt.Errorf("Apply: %w", err)
		}
		for _, object := range objects {
			if err := c.apply(ctx, object); err != nil {
				return fmt.Errorf("Apply: %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

// ApplyObject applies one object. One that client-go or controller-runtime has made needs no kind.
func (c *Client) ApplyObject(ctx context.Context, object runtime.Object) error {
	content, err := asUnstructured(object)
	if err == nil {
		err = c.apply(ctx, content)
	}
	if err != nil {
		return fmt.Errorf("ApplyObject: %w", err)
	}
	return nil
}

// Delete deletes objects, with their dependents in the background.
func (c *Client) Delete(ctx context.Context, targets ...string) error {
	for _, target := range targets {
		if err := c.remove(ctx, target); err != nil {
			return fmt.Errorf("Delete %s: %w", target, err)
		}
	}
	return nil
}

func (c *Client) remove(ctx context.Context, target string) error {
	client, name, err := c.target(target)
	if err != nil {
		return err
	}
	return untilKnown(func(again bool) error {
		err := client.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		if again && apierrors.IsNotFound(err) {
			return nil // the first one did it
		}
		return err
	})
}

func (c *Client) apply(ctx context.Context, object *unstructured.Unstructured) error {
	mapping, err := c.mappingOf(ctx, object)
	if err != nil {
		return err
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = c.Namespace
	}
	client, err := c.resource(mapping, namespace)
	if err != nil {
		return err
	}
	if object.GetName() == "" {
		_, err = client.Create(ctx, object, metav1.CreateOptions{FieldManager: c.Manager})
		return err
	}
	return untilKnown(func(bool) error {
		_, err := client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: c.Manager, Force: true})
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
func (c *Client) mappingOf(ctx context.Context, object *unstructured.Unstructured) (*meta.RESTMapping, error) {
	gvk := object.GroupVersionKind()
	for deadline := time.Now().Add(establishLimit); ; time.Sleep(pollMin) {
		mapping, err := c.Kinds.find(c.Admin, func(m meta.RESTMapper) (*meta.RESTMapping, error) {
			return m.RESTMapping(gvk.GroupKind(), gvk.Version)
		})
		if meta.IsNoMatchError(err) && time.Now().Before(deadline) && c.defines(ctx, gvk.Group, gvk.Kind) {
			continue
		}
		if meta.IsNoMatchError(err) {
			return nil, c.unserved(gvk)
		}
		return mapping, err
	}
}

// unserved says what of a kind is not served: all of it, or this version.
func (c *Client) unserved(gvk schema.GroupVersionKind) error {
	other, err := c.Kinds.find(c.Admin, func(m meta.RESTMapper) (*meta.RESTMapping, error) { return m.RESTMapping(gvk.GroupKind()) })
	if err != nil {
		return &unknownKindError{gvk.GroupKind().String()}
	}
	return fmt.Errorf("the cluster does not serve version %s of it: write apiVersion: %s", gvk.Version, other.GroupVersionKind.GroupVersion())
}

func (c *Client) definitions() (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(c.Admin)
	if err != nil {
		return nil, err
	}
	return client.Resource(definitionsResource), nil
}

// defines reports whether a CRD defines the kind.
func (c *Client) defines(ctx context.Context, group, kind string) bool {
	client, err := c.definitions()
	if err != nil {
		return false
	}
	all, err := client.List(ctx, metav1.ListOptions{})
	return err == nil && slices.ContainsFunc(all.Items, func(d unstructured.Unstructured) bool {
		of, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		named, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		return of == group && named == kind
	})
}

// Await calls check until it says true.
func Await(ctx context.Context, limit time.Duration, check func() (bool, error)) error {
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
