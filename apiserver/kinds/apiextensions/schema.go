package apiextensions

import (
	"bytes"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schemaProps = apiextensionsv1.JSONSchemaProps

// setDefaults fills in what is not set. Schemas come to say what their JSON says: upstream keeps definitions as JSON, so
// whatever a client sends, protobuf included, has been JSON before anybody acts on it.
func setDefaults(d *definition) {
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(d)
	for i := range d.Spec.Versions {
		if v := d.Spec.Versions[i].Schema; v != nil {
			asJSON(v.OpenAPIV3Schema)
		}
	}
}

// asJSON makes of a schema what encoding it as JSON and decoding that makes of it: properties that have a schema are
// allowed, one of two alternatives remains, and null is nothing.
func asJSON(s *schemaProps) {
	if s == nil {
		return
	}
	s.Default, s.Example = withoutNull(s.Default), withoutNull(s.Example)
	s.AdditionalProperties, s.AdditionalItems = schemaOrBool(s.AdditionalProperties), schemaOrBool(s.AdditionalItems)
	s.Items = schemaOrArray(s.Items)
	asJSON(s.Not)
	for _, list := range [][]schemaProps{s.AllOf, s.OneOf, s.AnyOf} {
		eachAsJSON(list)
	}
	for _, named := range []map[string]schemaProps{s.Properties, s.PatternProperties, s.Definitions} {
		for name, child := range named {
			asJSON(&child)
			named[name] = child
		}
	}
	for name, d := range s.Dependencies {
		if len(d.Property) > 0 {
			d.Schema = nil
		}
		asJSON(d.Schema)
		s.Dependencies[name] = d
	}
}

func eachAsJSON(list []schemaProps) {
	for i := range list {
		asJSON(&list[i])
	}
}

func schemaOrBool(s *apiextensionsv1.JSONSchemaPropsOrBool) *apiextensionsv1.JSONSchemaPropsOrBool {
	if s != nil && s.Schema != nil {
		s.Allows = true
		asJSON(s.Schema)
	}
	return s
}

func schemaOrArray(s *apiextensionsv1.JSONSchemaPropsOrArray) *apiextensionsv1.JSONSchemaPropsOrArray {
	switch {
	case s == nil || len(s.JSONSchemas) == 0 && s.Schema == nil:
		return nil
	case len(s.JSONSchemas) > 0:
		s.Schema = nil
	}
	eachAsJSON(s.JSONSchemas)
	asJSON(s.Schema)
	return s
}

func withoutNull(value *apiextensionsv1.JSON) *apiextensionsv1.JSON {
	if value == nil || len(value.Raw) == 0 || bytes.Equal(value.Raw, []byte("null")) {
		return nil
	}
	return value
}
