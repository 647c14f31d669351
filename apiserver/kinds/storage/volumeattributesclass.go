package storage

import (
	"maps"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func volumeAttributesClasses() resource.Kind[*storagev1.VolumeAttributesClass] {
	return resource.Kind[*storagev1.VolumeAttributesClass]{
		GroupVersionKind: storagev1.SchemeGroupVersion.WithKind("VolumeAttributesClass"),
		Plural:           "volumeattributesclasses",
		ReturnDeleted:    true,
		ShortNames:       []string{"vac"},
		ClusterScoped:    true,
		New:              func() *storagev1.VolumeAttributesClass { return &storagev1.VolumeAttributesClass{} },
		NewList:          func() runtime.Object { return &storagev1.VolumeAttributesClassList{} },
		Validate:         validateAttributesClass,
		ValidateUpdate:   validateAttributesClassUpdate,
		Columns: []resource.Column[*storagev1.VolumeAttributesClass]{
			column.Name[*storagev1.VolumeAttributesClass](),
			column.Text(
				"DriverName",
				storagev1.VolumeAttributesClass{}.SwaggerDoc()["driverName"],
				0,
				func(class *storagev1.VolumeAttributesClass) string { return class.DriverName },
			),
			column.Age[*storagev1.VolumeAttributesClass](),
		},
	}
}

func validateAttributesClass(class *storagev1.VolumeAttributesClass) field.ErrorList {
	path := field.NewPath("parameters")
	errs := validateProvisioner(class.DriverName, field.NewPath("driverName"))
	errs = append(errs, validateParameters(class.Parameters, path)...)
	if len(class.Parameters) == 0 {
		errs = append(errs, field.Required(path, "must contain at least one key/value pair"))
	}
	return errs
}

func validateAttributesClassUpdate(class, old *storagev1.VolumeAttributesClass) field.ErrorList {
	var errs field.ErrorList
	if class.DriverName != old.DriverName {
		errs = append(errs, field.Forbidden(field.NewPath("driverName"), "updates to driverName are forbidden."))
	}
	if !maps.Equal(class.Parameters, old.Parameters) {
		errs = append(errs, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
	}
	return append(errs, validateAttributesClass(class)...)
}
