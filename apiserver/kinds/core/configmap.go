package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func configMaps() resource.Kind[*corev1.ConfigMap] {
	return resource.Kind[*corev1.ConfigMap]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		Plural:           "configmaps",
		ShortNames:       []string{"cm"},
		New:              func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		NewList:          func() runtime.Object { return &corev1.ConfigMapList{} },
		Default:          defaultConfigMap,
		Validate:         validateConfigMap,
		ValidateUpdate:   validateConfigMapUpdate,
		Columns: []resource.Column[*corev1.ConfigMap]{
			column.Name[*corev1.ConfigMap](),
			column.Count("Data", corev1.ConfigMap{}.SwaggerDoc()["data"], func(cm *corev1.ConfigMap) int64 {
				return int64(len(cm.Data) + len(cm.BinaryData))
			}),
			column.Age[*corev1.ConfigMap](),
		},
	}
}

func defaultConfigMap(cm *corev1.ConfigMap) {
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
}

func validateConfigMap(cm *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for key, value := range cm.Data {
		errs = append(errs, rule.DataKey(key, field.NewPath("data").Key(key))...)
		if _, both := cm.BinaryData[key]; both {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(value)
	}
	for key, value := range cm.BinaryData {
		errs = append(errs, rule.DataKey(key, field.NewPath("binaryData").Key(key))...)
		if _, both := cm.Data[key]; both {
			errs = append(errs, field.Invalid(field.NewPath("binaryData").Key(key), key, "duplicate of key present in data"))
		}
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		// The path is empty: no single field is too long.
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

func validateConfigMapUpdate(cm, old *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	if rule.IsTrue(old.Immutable) {
		if !rule.IsTrue(cm.Immutable) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
		}
		if !equality.Semantic.DeepEqual(cm.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
		}
		if !equality.Semantic.DeepEqual(cm.BinaryData, old.BinaryData) {
			errs = append(errs, field.Forbidden(field.NewPath("binaryData"), "field is immutable when `immutable` is set"))
		}
	}
	return append(errs, validateConfigMap(cm)...)
}
