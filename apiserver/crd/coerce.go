package crd

import (
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// coercer does to an object without a Go type what decoding into one would do:
// metadata gets its types, unknown fields go, and nulls that mean nothing.
type coercer struct {
	definition *definition
	// lenient drops malformed metadata instead of refusing it, and repairs a missing
	// generation: for objects that are in the store already.
	lenient bool
	// report collects the paths of unknown fields.
	report bool
}

// apply coerces u in place. Objects of other kinds, such as options, only get their
// metadata typed.
func (c coercer) apply(u *unstructured.Unstructured) (unknown []string, err error) {
	kind, foundKind, err := unstructured.NestedString(u.Object, "kind")
	if err != nil {
		return nil, err
	}
	apiVersion, foundVersion, err := unstructured.NestedString(u.Object, "apiVersion")
	if err != nil {
		return nil, err
	}
	metadata, foundMetadata, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields: c.lenient, ReturnUnknownFieldPaths: c.report,
	})
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	if (schema.GroupKind{Group: gv.Group, Kind: kind}) == c.definition.groupKind() {
		paths, err := c.known(u.Object, gv.Version)
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, paths...)
		if c.lenient && metadata != nil && metadata.Generation == 0 {
			metadata.Generation = 1
		}
	}
	// These three need not be in a schema, and pruning may have taken them.
	if foundKind {
		u.SetKind(kind)
	}
	if foundVersion {
		u.SetAPIVersion(apiVersion)
	}
	if foundMetadata {
		err = objectmeta.SetObjectMeta(u.Object, metadata)
	}
	return unknown, err
}

// known removes nulls that mean nothing, then what the version's schema does not know.
func (c coercer) known(object map[string]any, version string) (unknown []string, err error) {
	s, err := c.definition.schemas.of(version)
	if err != nil {
		return nil, err
	}
	if !c.definition.crd.Spec.PreserveUnknownFields {
		defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
	}
	return c.prune(object, version)
}

// prune removes what the version's schema does not know, embedded metadata included.
func (c coercer) prune(object map[string]any, version string) (unknown []string, err error) {
	s, err := c.definition.schemas.of(version)
	if err != nil {
		return nil, err
	}
	if !c.definition.crd.Spec.PreserveUnknownFields {
		unknown = pruning.PruneWithOptions(object, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: c.report})
	}
	coerceErr, paths := objectmeta.CoerceWithOptions(nil, object, s, false, objectmeta.CoerceOptions{
		DropInvalidFields: c.lenient, ReturnUnknownFieldPaths: c.report,
	})
	if coerceErr != nil {
		return nil, coerceErr
	}
	return append(unknown, paths...), nil
}

// coercingDecoder coerces what another decoder read.
type coercingDecoder struct {
	runtime.Decoder
	coercer
}

func (d coercingDecoder) Decode(
	data []byte,
	defaults *schema.GroupVersionKind,
	into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	var strict []error
	if err != nil {
		found, ok := runtime.AsStrictDecodingError(err)
		if !ok || obj == nil {
			return nil, gvk, err
		}
		strict = found.Errors()
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		unknown, err := d.apply(u)
		if err != nil {
			return nil, gvk, err
		}
		for _, path := range unknown {
			strict = append(strict, fmt.Errorf(`unknown field "%s"`, path))
		}
	}
	if d.report && len(strict) > 0 {
		return obj, gvk, runtime.NewStrictDecodingError(strict)
	}
	return obj, gvk, nil
}

// defaulter fills in the defaults of an object's own version.
type defaulter struct {
	runtime.ObjectDefaulter // for objects of other kinds
	definition              *definition
}

func (d defaulter) Default(in runtime.Object) {
	u, ok := in.(runtime.Unstructured)
	if !ok || u.GetObjectKind().GroupVersionKind().GroupKind() != d.definition.groupKind() {
		d.ObjectDefaulter.Default(in)
		return
	}
	// A schema that cannot be read has no defaults; the handlers were not built then.
	if s, err := d.definition.schemas.of(u.GetObjectKind().GroupVersionKind().Version); err == nil {
		defaulting.Default(u.UnstructuredContent(), s)
	}
}
