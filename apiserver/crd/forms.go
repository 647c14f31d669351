package crd

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// forms turns kept objects into those of a version and back.
type forms struct {
	version *servedVersion
}

// serve coerces and defaults objects as the version says under which they were kept,
// then converts them, all in one call, and coerces the result.
func (f forms) serve(kept []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	d := f.version.definition
	list := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, len(kept))}
	list.SetGroupVersionKind(f.version.listKind())
	for i, object := range kept {
		u := object.DeepCopy()
		if _, err := (coercer{definition: d, lenient: true}).apply(u); err != nil {
			return nil, err
		}
		d.defaulter().Default(u)
		list.Items[i] = *u
	}
	if err := f.convert(list, f.version.gvk().GroupVersion()); err != nil {
		return nil, err
	}
	served := make([]*unstructured.Unstructured, len(kept))
	for i := range list.Items {
		served[i] = &list.Items[i]
		served[i].SetResourceVersion(kept[i].GetResourceVersion())
	}
	return served, nil
}

// complete gives a new object the status that its schema has for those without one. The status of a new object is not the client's,
// so what the client's was defaulted to is gone.
func (f forms) complete(created *unstructured.Unstructured) {
	d := f.version.definition
	s, err := d.schemas.of(f.version.gvk().Version)
	if err != nil || s == nil || s.Properties["status"].Default.Object == nil {
		return // without a schema that can be read there are no handlers
	}
	d.defaulter().Default(created)
}

// store converts an object to the storage version.
func (f forms) store(served *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	apiVersion, err := f.version.definition.storageVersion()
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || served.GetAPIVersion() == apiVersion {
		return served, err
	}
	list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*served.DeepCopy()}}
	list.SetGroupVersionKind(f.version.listKind())
	if err := f.convert(list, gv); err != nil {
		return nil, err
	}
	return &list.Items[0], nil
}

// convert changes the version of the items in place.
func (f forms) convert(list *unstructured.UnstructuredList, gv schema.GroupVersion) error {
	d := f.version.definition
	if needsConversion(list, gv) {
		c, err := d.converter()
		if err != nil {
			return err
		}
		converted, err := c.unsafe.ConvertToVersion(list, gv)
		if err != nil {
			return err
		}
		*list = *converted.(*unstructured.UnstructuredList)
	}
	for i := range list.Items {
		if _, err := (coercer{definition: d}).apply(&list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// table is the version's own view of the objects.
func (f forms) table(store *storage.Store) (*storage.Table, error) {
	storageVersion, err := f.version.definition.storageVersion()
	if err != nil {
		return nil, err
	}
	conversion := f.version.definition.crd.Spec.Conversion
	return store.NewTable(storage.Dynamic{
		Kind: f.version.kind(), StorageVersion: storageVersion, Serve: f.serve, Store: f.store, Complete: f.complete,
		Volatile: conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter,
		Until:    f.version.definition.ctx,
	}), nil
}
