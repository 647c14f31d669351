package apps

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/claim"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/kinds/workload"
)

var retentionPolicies = []appsv1.PersistentVolumeClaimRetentionPolicyType{
	appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
}

// stateful says which parts of a stored set are not judged again: those that cannot
// change any more, and a template that was not valid before.
type stateful struct {
	update, skipTemplate bool
}

func validateStatefulSet(set *appsv1.StatefulSet) field.ErrorList {
	return stateful{}.validate(&set.Spec, field.NewPath("spec"))
}

func validateStatefulSetUpdate(set, old *appsv1.StatefulSet) field.ErrorList {
	path := field.NewPath("spec")
	judge := stateful{update: true}
	judge.skipTemplate = len(judge.validate(&old.Spec, nil)) > 0
	errs := judge.validate(&set.Spec, path)
	errs = append(errs, validation.ValidateImmutableField(set.Spec.Selector, old.Spec.Selector, path.Child("selector"))...)
	errs = append(
		errs,
		validation.ValidateImmutableField(
			set.Spec.VolumeClaimTemplates,
			old.Spec.VolumeClaimTemplates,
			path.Child("volumeClaimTemplates"),
		)...)
	errs = append(errs, validation.ValidateImmutableField(set.Spec.ServiceName, old.Spec.ServiceName, path.Child("serviceName"))...)
	return append(
		errs,
		validation.ValidateImmutableField(set.Spec.PodManagementPolicy, old.Spec.PodManagementPolicy, path.Child("podManagementPolicy"))...)
}

func (s stateful) validate(spec *appsv1.StatefulSetSpec, path *field.Path) field.ErrorList {
	errs := validateManagementPolicy(spec.PodManagementPolicy, path.Child("podManagementPolicy"))
	errs = append(errs, validateStatefulStrategy(&spec.UpdateStrategy, path.Child("updateStrategy"))...)
	if policy := spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		at := path.Child("persistentVolumeClaimRetentionPolicy")
		errs = append(errs, rule.OneOf(policy.WhenDeleted, retentionPolicies, at.Child("whenDeleted"))...)
		errs = append(errs, rule.OneOf(policy.WhenScaled, retentionPolicies, at.Child("whenScaled"))...)
	}
	if !s.update {
		for i := range spec.VolumeClaimTemplates {
			errs = append(
				errs,
				claim.Validate(&spec.VolumeClaimTemplates[i].Spec, nil, path.Child("volumeClaimTemplates").Index(i).Child("spec"))...)
		}
		if spec.ServiceName != "" {
			errs = append(errs, rule.Label(spec.ServiceName, path.Child("serviceName"))...)
		}
	}
	rule.Nonnegative(&errs, ptr.Deref(spec.Replicas, 0), path.Child("replicas"))
	rule.Nonnegative(&errs, spec.MinReadySeconds, path.Child("minReadySeconds"))
	if spec.Ordinals != nil {
		rule.Nonnegative(&errs, spec.Ordinals.Start, path.Child("ordinals.start"))
	}
	errs = append(errs, validateStatefulSelector(spec.Selector, path.Child("selector"))...)
	template := path.Child("template")
	errs = append(errs, workload.ValidateSelected(&spec.Template, spec.Selector, template)...)
	if !s.skipTemplate {
		errs = append(errs, workload.ValidatePodTemplate(templateOfPods(spec), template)...)
	}
	return append(errs, workload.ValidateEndless(&spec.Template, "StatefulSet", template)...)
}

func validateStatefulSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	errs := workload.ValidateSelector(selector, "statefulset", path)
	for _, err := range errs {
		if err.Detail == "invalid label selector" {
			err.Detail = "" // as upstream says it for this kind
		}
	}
	return errs
}

func validateManagementPolicy(policy appsv1.PodManagementPolicyType, path *field.Path) field.ErrorList {
	switch policy {
	case "":
		return field.ErrorList{field.Required(path, "")}
	case appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
		return nil
	}
	return field.ErrorList{
		field.Invalid(path, policy, fmt.Sprintf("must be '%s' or '%s'", appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)),
	}
}

func validateStatefulStrategy(strategy *appsv1.StatefulSetUpdateStrategy, path *field.Path) field.ErrorList {
	rolling := strategy.RollingUpdate
	switch strategy.Type {
	case "":
		return field.ErrorList{field.Required(path, "")}
	case appsv1.OnDeleteStatefulSetStrategyType:
		if rolling == nil {
			return nil
		}
		return field.ErrorList{field.Invalid(path.Child("rollingUpdate"), rolling,
			fmt.Sprintf("only allowed for updateStrategy '%s'", appsv1.RollingUpdateStatefulSetStrategyType))}
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if rolling == nil {
			return nil
		}
		return validateStatefulRolling(rolling, path.Child("rollingUpdate"))
	}
	return field.ErrorList{field.Invalid(path, strategy,
		fmt.Sprintf("must be '%s' or '%s'", appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType))}
}

func validateStatefulRolling(rolling *appsv1.RollingUpdateStatefulSetStrategy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	rule.Nonnegative(&errs, ptr.Deref(rolling.Partition, 0), path.Child("partition"))
	if rolling.MaxUnavailable == nil {
		return errs
	}
	unavailable, at := *rolling.MaxUnavailable, path.Child("maxUnavailable")
	errs = append(errs, workload.ValidateIntOrPercent(unavailable, at)...)
	if workload.Amount(unavailable) == 0 {
		errs = append(errs, field.Invalid(at, unavailable, "cannot be 0"))
	}
	return append(errs, workload.ValidatePercentMax(unavailable, at)...)
}

// templateOfPods is the template as the controller will use it: host names are its
// own, and each claim template is a volume.
func templateOfPods(spec *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	template := spec.Template.DeepCopy()
	template.Spec.Hostname, template.Spec.Subdomain = "", ""
	if len(spec.VolumeClaimTemplates) == 0 {
		return template
	}
	claimed := map[string]bool{}
	var volumes []corev1.Volume
	for i := range spec.VolumeClaimTemplates {
		name := spec.VolumeClaimTemplates[i].Name
		if claimed[name] {
			continue
		}
		claimed[name] = true
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	for _, volume := range template.Spec.Volumes {
		if !claimed[volume.Name] {
			volumes = append(volumes, volume)
		}
	}
	template.Spec.Volumes = volumes
	return template
}

func validateStatefulSetStatus(set, old *appsv1.StatefulSet) field.ErrorList {
	var errs field.ErrorList
	status, path := &set.Status, field.NewPath("status")
	for _, count := range []struct {
		name  string
		value int32
	}{
		{"replicas", status.Replicas},
		{"readyReplicas", status.ReadyReplicas},
		{"currentReplicas", status.CurrentReplicas},
		{"updatedReplicas", status.UpdatedReplicas},
		{"availableReplicas", status.AvailableReplicas},
	} {
		rule.Nonnegative(&errs, count.value, path.Child(count.name))
		rule.AtMost(&errs, count.value, status.Replicas, "status.replicas", path.Child(count.name))
	}
	errs = append(errs, validation.ValidateNonnegativeField(status.ObservedGeneration, path.Child("observedGeneration"))...)
	rule.AtMost(&errs, status.AvailableReplicas, status.ReadyReplicas, "status.readyReplicas", path.Child("availableReplicas"))
	return append(errs, workload.ValidateCollisionCount(status.CollisionCount, old.Status.CollisionCount, path.Child("collisionCount"))...)
}
