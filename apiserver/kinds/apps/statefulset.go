package apps

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/claim"
	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podwarnings"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func statefulSets() resource.Kind[*appsv1.StatefulSet] {
	return resource.Kind[*appsv1.StatefulSet]{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		Plural:           "statefulsets",
		ShortNames:       []string{"sts"},
		Categories:       []string{"all"},
		New:              func() *appsv1.StatefulSet { return &appsv1.StatefulSet{} },
		NewList:          func() runtime.Object { return &appsv1.StatefulSetList{} },
		// Pods are named after the set, and are host names.
		ValidateName:   validation.NameIsDNSLabel,
		Default:        defaultStatefulSet,
		Validate:       validateStatefulSet,
		ValidateUpdate: validateStatefulSetUpdate,
		ValidateStatus: validateStatefulSetStatus,
		ChangeWarnings: statefulSetWarnings,
		Spec:           func(set *appsv1.StatefulSet) any { return &set.Spec },
		Status:         func(set *appsv1.StatefulSet) any { return &set.Status },
		Generation:     true,
		Bookmark:       func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32) },
		Columns: slices.Concat([]resource.Column[*appsv1.StatefulSet]{
			column.Name[*appsv1.StatefulSet](),
			column.Text("Ready", "Number of the pod with ready state", 0, func(set *appsv1.StatefulSet) string {
				return fmt.Sprintf("%d/%d", set.Status.ReadyReplicas, ptr.Deref(set.Spec.Replicas, 0))
			}),
			column.Age[*appsv1.StatefulSet](),
		}, workload.Columns(func(set *appsv1.StatefulSet) *corev1.PodTemplateSpec { return &set.Spec.Template })),
		Scale: &resource.Scale[*appsv1.StatefulSet]{
			Replicas:       func(set *appsv1.StatefulSet) int32 { return ptr.Deref(set.Spec.Replicas, 0) },
			SetReplicas:    func(set *appsv1.StatefulSet, replicas int32) { set.Spec.Replicas = &replicas },
			StatusReplicas: func(set *appsv1.StatefulSet) int32 { return set.Status.Replicas },
			Selector:       func(set *appsv1.StatefulSet) string { return workload.SelectorText(set.Spec.Selector) },
		},
	}
}

func defaultStatefulSet(set *appsv1.StatefulSet) {
	spec := &set.Spec
	rule.Default(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if spec.UpdateStrategy.Type == "" {
		spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		rule.DefaultPointer(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil &&
		spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		rule.DefaultPointer(&rolling.Partition, 0)
		rule.DefaultPointer(&rolling.MaxUnavailable, intstr.FromInt32(1))
	}
	rule.DefaultPointer(&spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	rule.Default(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	rule.Default(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	rule.DefaultPointer(&spec.Replicas, 1)
	rule.DefaultPointer(&spec.RevisionHistoryLimit, defaultHistoryLimit)
	for i := range spec.VolumeClaimTemplates {
		defaultClaimTemplate(&spec.VolumeClaimTemplates[i])
	}
	podspec.Default(&spec.Template.Spec)
}

// defaultClaimTemplate makes a whole claim of a template: clients compare it with
// what Kubernetes returns.
func defaultClaimTemplate(template *corev1.PersistentVolumeClaim) {
	template.APIVersion, template.Kind = "v1", "PersistentVolumeClaim"
	rule.Default(&template.Status.Phase, corev1.ClaimPending)
	rule.RoundUp(template.Status.Capacity)
	rule.RoundUp(template.Status.AllocatedResources)
	claim.Default(&template.Spec)
}

func statefulSetWarnings(set, old *appsv1.StatefulSet) []string {
	var warnings []string
	if workload.Changed(set, old) {
		warnings = podwarnings.Template(&set.Spec.Template, field.NewPath("spec", "template"))
	}
	for i := range set.Spec.VolumeClaimTemplates {
		warnings = append(
			warnings,
			claim.Warnings(&set.Spec.VolumeClaimTemplates[i].Spec, field.NewPath("spec", "volumeClaimTemplates").Index(i))...)
	}
	if limit := set.Spec.RevisionHistoryLimit; limit != nil && *limit < 0 {
		warnings = append(
			warnings,
			"spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended",
		)
	}
	return warnings
}
