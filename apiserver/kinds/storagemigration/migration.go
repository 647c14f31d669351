package storagemigration

import (
	"strings"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

type migration = migrationv1.StorageVersionMigration

func migrations() resource.Kind[*migration] {
	return resource.Kind[*migration]{
		GroupVersionKind:       migrationv1.SchemeGroupVersion.WithKind("StorageVersionMigration"),
		Plural:                 "storageversionmigrations",
		ClusterScoped:          true,
		New:                    func() *migration { return &migration{} },
		NewList:                func() runtime.Object { return &migrationv1.StorageVersionMigrationList{} },
		StatusResets:           []string{"metadata", "spec"},
		PrepareStatus:          func(m, old *migration) { metav1.ResetObjectMetaForStatus(m, old) },
		Validate:               validateMigration,
		ValidateUpdate:         validateMigrationUpdate,
		ValidateStatus:         validateMigrationStatus,
		Spec:                   func(m *migration) any { return &m.Spec },
		Status:                 func(m *migration) any { return &m.Status },
		RequireResourceVersion: true,
		Columns: []resource.Column[*migration]{
			nameColumn(),
			column.Text("Resource", "GroupResource to migrate", 0, func(m *migration) string { return m.Spec.Resource.String() }),
			column.Text("Status", "Status of the migration", 0, statusCell),
		},
	}
}

// nameColumn does not say that it is a name, as upstream's does not.
func nameColumn() resource.Column[*migration] {
	name := column.Name[*migration]()
	name.Format = ""
	return name
}

// statusCell is the last of the conditions that hold.
func statusCell(m *migration) string {
	status := "Unknown"
	for _, condition := range m.Status.Conditions {
		switch migrationv1.MigrationConditionType(condition.Type) {
		case migrationv1.MigrationRunning, migrationv1.MigrationFailed, migrationv1.MigrationSucceeded:
			if condition.Status == metav1.ConditionTrue {
				status = condition.Type
			}
		}
	}
	return status
}

func validateMigration(m *migration) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "resource")
	if name := m.Spec.Resource.Resource; name == "" {
		errs = append(errs, field.Required(path.Child("resource"), "resource is required to be set"))
	} else if msgs := utilvalidation.IsDNS1035Label(name); len(msgs) > 0 {
		errs = append(errs, field.Invalid(path.Child("resource"), name, strings.Join(msgs, ",")))
	}
	if group := m.Spec.Resource.Group; group != "" {
		if msgs := utilvalidation.IsDNS1123Subdomain(group); len(msgs) > 0 {
			errs = append(errs, field.Invalid(path.Child("group"), group, strings.Join(msgs, ",")))
		}
	}
	return errs
}

func validateMigrationUpdate(m, old *migration) field.ErrorList {
	return append(validateMigration(m), validation.ValidateImmutableField(m.Spec, old.Spec, field.NewPath("spec"))...)
}

// validateMigrationStatus: a migration runs once, from the version at which it began.
func validateMigrationStatus(m, old *migration) field.ErrorList {
	path := field.NewPath("status")
	version, conditions := path.Child("resourceVersion"), path.Child("conditions")
	var errs field.ErrorList
	if text := m.Status.ResourceVersion; text != "" {
		if _, err := resourceversion.CompareResourceVersion(text, text); err != nil {
			errs = append(errs, field.Invalid(version, text, err.Error()))
		}
	}
	errs = append(errs, metav1validation.ValidateConditions(m.Status.Conditions, conditions)...)
	if was := old.Status.ResourceVersion; was != "" && was != m.Status.ResourceVersion {
		errs = append(errs, field.Invalid(version, m.Status.ResourceVersion, "field is immutable"))
	}
	succeeded, failed := is(m, migrationv1.MigrationSucceeded), is(m, migrationv1.MigrationFailed)
	for _, rule := range []struct {
		broken bool
		detail string
	}{
		{succeeded && failed, "Both success and failed conditions cannot be true at the same time"},
		{is(old, migrationv1.MigrationSucceeded) && !succeeded, "Success condition cannot be set to false once it is true"},
		{is(old, migrationv1.MigrationFailed) && !failed, "Failed condition cannot be set to false once it is true"},
	} {
		if rule.broken {
			errs = append(errs, field.Invalid(conditions, m.Status.Conditions, rule.detail))
		}
	}
	return errs
}

func is(m *migration, kind migrationv1.MigrationConditionType) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(kind))
}
