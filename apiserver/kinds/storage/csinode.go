package storage

import (
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// nodeIDLengthMax bounds the name under which a driver knows a node, in bytes.
const nodeIDLengthMax = 256

func csiNodes() resource.Kind[*storagev1.CSINode] {
	return resource.Kind[*storagev1.CSINode]{
		GroupVersionKind:       storagev1.SchemeGroupVersion.WithKind("CSINode"),
		Plural:                 "csinodes",
		ReturnDeleted:          true,
		ClusterScoped:          true,
		New:                    func() *storagev1.CSINode { return &storagev1.CSINode{} },
		NewList:                func() runtime.Object { return &storagev1.CSINodeList{} },
		StatusResets:           []string{"metadata", "spec"},
		PrepareStatus:          prepareCSINodeStatus,
		Validate:               validateCSINode,
		ValidateUpdate:         validateCSINodeUpdate,
		Spec:                   func(node *storagev1.CSINode) any { return &node.Spec },
		Status:                 func(node *storagev1.CSINode) any { return &node.Status },
		RequireResourceVersion: true,
		Columns: []resource.Column[*storagev1.CSINode]{
			column.Name[*storagev1.CSINode](),
			column.Int(
				"Drivers",
				"Drivers indicates the number of CSI drivers registered on the node",
				func(node *storagev1.CSINode) int64 { return int64(len(node.Spec.Drivers)) },
			),
			column.Age[*storagev1.CSINode](),
		},
	}
}

// prepareCSINodeStatus drops what is behind a gate that is off in this release
// (CSIVolumeHealth), which is all of the status.
func prepareCSINodeStatus(node, old *storagev1.CSINode) {
	metav1.ResetObjectMetaForStatus(node, old)
	node.Status = old.Status
}

func validateCSINode(node *storagev1.CSINode) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range node.Spec.Drivers {
		driver, path := &node.Spec.Drivers[i], field.NewPath("spec", "drivers").Index(i)
		errs = append(errs, validateNodeDriver(driver, path)...)
		if names[driver.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), driver.Name))
		}
		names[driver.Name] = true
	}
	return errs
}

func validateNodeDriver(driver *storagev1.CSINodeDriver, path *field.Path) field.ErrorList {
	errs := validateDriverName(driver.Name, path.Child("name"))
	errs = append(errs, rule.Required(driver.NodeID, path.Child("nodeID"))...)
	if len(driver.NodeID) > nodeIDLengthMax {
		errs = append(
			errs,
			field.Invalid(path.Child("nodeID"), driver.NodeID, fmt.Sprintf("must be %d characters or less", nodeIDLengthMax)),
		)
	}
	if driver.Allocatable != nil && driver.Allocatable.Count != nil {
		rule.Nonnegative(&errs, *driver.Allocatable.Count, path.Child("allocatable", "count"))
	}
	keys := map[string]bool{}
	for _, key := range driver.TopologyKeys {
		errs = append(errs, rule.Required(key, path)...)
		if keys[key] {
			errs = append(errs, field.Duplicate(path, key))
		}
		keys[key] = true
		errs = append(errs, rule.QualifiedName(key, path)...)
	}
	return errs
}

// validateCSINodeUpdate: a driver stays as it registered, except for how many volumes
// it takes.
func validateCSINodeUpdate(node, old *storagev1.CSINode) field.ErrorList {
	errs := validateCSINode(node)
	before := map[string]storagev1.CSINodeDriver{}
	for _, driver := range old.Spec.Drivers {
		driver.Allocatable = nil
		before[driver.Name] = driver
	}
	for _, driver := range node.Spec.Drivers {
		driver.Allocatable = nil
		if was, known := before[driver.Name]; known {
			errs = append(errs, validation.ValidateImmutableField(driver, was, field.NewPath("spec", "drivers"))...)
		}
	}
	return errs
}
