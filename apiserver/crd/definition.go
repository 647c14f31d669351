package crd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// changedRetryAfterSeconds is how soon a client should try again whose write met a
// change of the definition.
const changedRetryAfterSeconds = 1

// definition is one generation of a CustomResourceDefinition as it is served. Its
// parts are made when they are first needed.
type definition struct {
	catalog *Catalog
	// crd is shared with all readers of the table.
	crd *apiextensionsv1.CustomResourceDefinition
	// ctx ends when the definition is replaced.
	ctx context.Context
	end context.CancelFunc

	schemas   schemas
	converter func() (converter, error)
	fields    func() (managedfields.TypeConverter, error)

	mu       sync.Mutex
	versions map[string]*servedVersion
}

func newDefinition(c *Catalog, crd *apiextensionsv1.CustomResourceDefinition) *definition {
	d := &definition{catalog: c, crd: crd, versions: map[string]*servedVersion{}}
	d.ctx, d.end = context.WithCancel(context.Background())
	d.schemas = newSchemas(crd)
	d.converter = sync.OnceValues(func() (converter, error) { return c.converters.of(crd) })
	d.fields = sync.OnceValues(func() (managedfields.TypeConverter, error) { return d.typeConverter(c.config.Models) })
	return d
}

// isOf reports whether the definition is what crd says.
func (d *definition) isOf(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return d.crd.UID == crd.UID && d.crd.Generation == crd.Generation &&
		apiequality.Semantic.DeepEqual(d.crd.Status.AcceptedNames, crd.Status.AcceptedNames)
}

func (d *definition) group() string { return d.crd.Spec.Group }

func (d *definition) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: d.group(), Kind: d.crd.Status.AcceptedNames.Kind}
}

func (d *definition) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: d.group(), Resource: d.crd.Status.AcceptedNames.Plural}
}

// apiVersion is the name of a version on the wire.
func (d *definition) apiVersion(version string) string { return d.group() + "/" + version }

// storageVersion is the apiVersion under which objects are kept.
func (d *definition) storageVersion() (string, error) {
	name, err := apihelpers.GetCRDStorageVersion(d.crd)
	return d.apiVersion(name), err
}

// servedStorageVersion is the storageVersion; "" while it is not served.
func (d *definition) servedStorageVersion() string {
	for _, v := range d.crd.Spec.Versions {
		if v.Storage && v.Served {
			return d.apiVersion(v.Name)
		}
	}
	return ""
}

// version returns what serves a version, made by whoever asks first.
func (d *definition) version(name string) (*servedVersion, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.versions[name]; ok {
		return v, nil
	}
	for i := range d.crd.Spec.Versions {
		if spec := &d.crd.Spec.Versions[i]; spec.Name == name {
			v := newVersion(d, spec)
			d.versions[name] = v
			return v, nil
		}
	}
	return nil, fmt.Errorf("version %s not found in apiextensionsv1.CustomResourceDefinition: %v", name, d.crd.Name)
}

// guard lets a write pass only while the definition under which it was judged is in
// force, and nothing be created once that is being deleted. Its own record is a
// condition of the write.
func (d *definition) guard(v *storage.View, creating bool) error {
	found, err := v.Require(Resource, "", d.crd.Name)
	if err != nil {
		return err
	}
	now, ok := found.(*apiextensionsv1.CustomResourceDefinition)
	switch {
	case !ok:
		return apierrors.NewNotFound(d.groupResource(), "")
	case !d.isOf(now):
		return apierrors.NewTooManyRequests(
			fmt.Sprintf("the definition of %s has just changed: try again", d.crd.Name),
			changedRetryAfterSeconds,
		)
	case creating && isTerminating(now):
		return apierrors.NewForbidden(
			d.groupResource(),
			"",
			errors.New("create not allowed while custom resource definition is terminating"),
		)
	}
	return nil
}

func isTerminating(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.DeletionTimestamp != nil || apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating)
}

// subresources of a version, never nil.
func subresources(v *apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.CustomResourceSubresources {
	if v.Subresources == nil {
		return apiextensionsv1.CustomResourceSubresources{}
	}
	return *v.Subresources
}

// statusVersions are the apiVersions that have a status subresource.
func (d *definition) statusVersions() []string {
	var names []string
	for i := range d.crd.Spec.Versions {
		if v := &d.crd.Spec.Versions[i]; subresources(v).Status != nil {
			names = append(names, d.apiVersion(v.Name))
		}
	}
	return names
}

// equivalents tells admission which resources show the same objects.
func (d *definition) equivalents() runtime.EquivalentResourceRegistry {
	registry := runtime.NewEquivalentResourceRegistry()
	for i := range d.crd.Spec.Versions {
		v := &d.crd.Spec.Versions[i]
		gvr, gvk := d.groupResource().WithVersion(v.Name), d.groupKind().WithVersion(v.Name)
		registry.RegisterKindFor(gvr, "", gvk)
		if subresources(v).Status != nil {
			registry.RegisterKindFor(gvr, "status", gvk)
		}
		if subresources(v).Scale != nil {
			registry.RegisterKindFor(gvr, "scale", autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
		}
	}
	return registry
}

// replicasPaths are where each apiVersion keeps the desired number of replicas.
func (d *definition) replicasPaths() map[string][]string {
	paths := map[string][]string{}
	for i := range d.crd.Spec.Versions {
		v := &d.crd.Spec.Versions[i]
		paths[d.apiVersion(v.Name)] = nil
		if scale := subresources(v).Scale; scale != nil {
			paths[d.apiVersion(v.Name)] = fieldNames(scale.SpecReplicasPath)
		}
	}
	return paths
}

// fieldNames splits a simple JSONPath such as ".spec.replicas".
func fieldNames(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
