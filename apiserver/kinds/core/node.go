package core

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	rolePrefix = "node-role.kubernetes.io/"
	roleLabel  = "kubernetes.io/role"
)

func nodes() resource.Kind[*corev1.Node] {
	return resource.Kind[*corev1.Node]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Node"),
		Plural:           "nodes",
		ShortNames:       []string{"no"},
		ClusterScoped:    true,
		New:              func() *corev1.Node { return &corev1.Node{} },
		NewList:          func() runtime.Object { return &corev1.NodeList{} },
		Default:          defaultNode,
		PrepareCreate:    prepareNodeCreate,
		Validate:         validateNodeCreate,
		Warnings:         nodeWarnings,
		ValidateUpdate:   validateNodeUpdate,
		ValidateStatus:   validateNodeStatus,
		Spec:             func(node *corev1.Node) any { return &node.Spec },
		Status:           func(node *corev1.Node) any { return &node.Status },
		StatusOnCreate:   true,
		Columns:          nodeColumns(),
		Subresources:     []resource.Subresource{proxied("NodeProxyOptions")},
		Fields: func(node *corev1.Node) fields.Set {
			return fields.Set{"spec.unschedulable": strconv.FormatBool(node.Spec.Unschedulable)}
		},
	}
}

// defaultNode: a node that reserves nothing offers all it has.
func defaultNode(node *corev1.Node) {
	if node.Status.Allocatable == nil && node.Status.Capacity != nil {
		node.Status.Allocatable = maps.Clone(node.Status.Capacity)
	}
	rule.RoundUp(node.Status.Capacity)
	rule.RoundUp(node.Status.Allocatable)
	mirrorPodCIDR(&node.Spec)
	// Features that are switched off: DynamicKubeletConfig, InPlacePodVerticalScalingSchedulerPreemption.
	node.Spec.ConfigSource, node.Spec.PodPreemptionPolicy = nil, nil
}

// mirrorPodCIDR keeps the older single field and the list alike; for the sake of old clients the single one wins.
func mirrorPodCIDR(spec *corev1.NodeSpec) {
	switch {
	case spec.PodCIDR == "" && len(spec.PodCIDRs) > 0:
		spec.PodCIDR = spec.PodCIDRs[0]
	case spec.PodCIDR != "" && (len(spec.PodCIDRs) == 0 || spec.PodCIDRs[0] != spec.PodCIDR):
		spec.PodCIDRs = []string{spec.PodCIDR}
	}
}

// prepareNodeCreate: a status may come with a new node, but not of the feature that is gone (DynamicKubeletConfig).
func prepareNodeCreate(node *corev1.Node) { node.Status.Config = nil }

func nodeColumns() []resource.Column[*corev1.Node] {
	info := corev1.NodeSystemInfo{}.SwaggerDoc()
	status := corev1.NodeStatus{}.SwaggerDoc()
	return []resource.Column[*corev1.Node]{
		column.Name[*corev1.Node](),
		column.Text("Status", "The status of the node", 0, nodeStatusCell),
		column.Text("Roles", "The roles of the node", 0, nodeRolesCell),
		column.Age[*corev1.Node](),
		column.Text("Version", info["kubeletVersion"], 0, func(node *corev1.Node) string { return node.Status.NodeInfo.KubeletVersion }),
		column.Text(
			"Internal-IP",
			status["addresses"],
			1,
			func(node *corev1.Node) string { return nodeAddress(node, corev1.NodeInternalIP) },
		),
		column.Text(
			"External-IP",
			status["addresses"],
			1,
			func(node *corev1.Node) string { return nodeAddress(node, corev1.NodeExternalIP) },
		),
		column.Text(
			"OS-Image",
			info["osImage"],
			1,
			func(node *corev1.Node) string { return column.OrUnknown(node.Status.NodeInfo.OSImage) },
		),
		column.Text(
			"Kernel-Version",
			info["kernelVersion"],
			1,
			func(node *corev1.Node) string { return column.OrUnknown(node.Status.NodeInfo.KernelVersion) },
		),
		column.Text("Container-Runtime", info["containerRuntimeVersion"], 1, func(node *corev1.Node) string {
			return column.OrUnknown(node.Status.NodeInfo.ContainerRuntimeVersion)
		}),
	}
}

func nodeStatusCell(node *corev1.Node) string {
	status := "Unknown"
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		status = "NotReady"
		if condition.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRolesCell(node *corev1.Node) string {
	roles := map[string]bool{}
	for key, value := range node.Labels {
		if role, found := strings.CutPrefix(key, rolePrefix); found && role != "" {
			roles[role] = true
		}
		if key == roleLabel && value != "" {
			roles[value] = true
		}
	}
	return column.OrNone(strings.Join(slices.Sorted(maps.Keys(roles)), ","))
}

func nodeAddress(node *corev1.Node, kind corev1.NodeAddressType) string {
	for _, address := range node.Status.Addresses {
		if address.Type == kind {
			return address.Address
		}
	}
	return column.None
}

func validateNodeCreate(node *corev1.Node) field.ErrorList { return validateNode(node, &corev1.Node{}) }

// validateNode judges a node; ranges of pods that the old one, which may be empty, has already stay: whoever taints it cannot mend them.
func validateNode(node, old *corev1.Node) field.ErrorList {
	path := field.NewPath("spec")
	// Upstream looks for taints in the metadata when it complains.
	errs := validateTaints(node.Spec.Taints, field.NewPath("metadata", "taints"))
	errs = append(errs, validatePodCIDRs(node.Spec.PodCIDRs, old.Spec.PodCIDRs, path.Child("podCIDRs"))...)
	errs = append(errs, validateDeclaredFeatures(node.Status.DeclaredFeatures, field.NewPath("status", "declaredFeatures"))...)
	return append(errs, validateNodeResources(node)...)
}

// featureName is that of a feature that a node declares: MyFeature or MyFeature/mySubFeature.
var featureName = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$`)

func validateDeclaredFeatures(features []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range features {
		switch {
		case len(name) > utilvalidation.DNS1123SubdomainMaxLength:
			errs = append(
				errs,
				field.Invalid(
					path.Index(i),
					name,
					fmt.Sprintf(
						"invalid feature name %q: must be no more than %d characters",
						name,
						utilvalidation.DNS1123SubdomainMaxLength,
					),
				),
			)
		case !featureName.MatchString(name):
			errs = append(
				errs,
				field.Invalid(path.Index(i), name, fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, "+
					"with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", name)),
			)
		}
		if i == 0 {
			continue
		}
		if before := features[i-1]; before == name {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		} else if before > name {
			errs = append(errs, field.Invalid(path.Index(i), name, "list must be sorted alphabetically"))
		}
	}
	return errs
}

func validatePodCIDRs(cidrs, old []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, cidr := range cidrs {
		errs = append(errs, utilvalidation.IsValidCIDRForLegacyField(path.Index(i), cidr, true, old)...)
	}
	if len(cidrs) > 2 || len(cidrs) == 2 && isIPv6(cidrs[0]) == isIPv6(cidrs[1]) {
		errs = append(errs, field.Invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
	}
	return errs
}

func isIPv6(cidr string) bool { return strings.Contains(cidr, ":") }

func validateNodeResources(node *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		resources corev1.ResourceList
		path      *field.Path
	}{
		{node.Status.Capacity, field.NewPath("status", "capacity")},
		{node.Status.Allocatable, field.NewPath("status", "allocatable")},
	} {
		for _, name := range slices.Sorted(maps.Keys(list.resources)) {
			errs = append(errs, rule.Quantity(name, list.resources[name], list.path.Key(string(name)))...)
		}
	}
	return errs
}

func validateNodeUpdate(node, old *corev1.Node) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateNode(node, old)
	if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(node.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		errs = append(errs, field.Forbidden(path.Child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	if old.Spec.ProviderID != "" && node.Spec.ProviderID != old.Spec.ProviderID {
		why := "field cannot be modified once set"
		if node.Spec.ProviderID == "" {
			why = "field cannot be cleared once set"
		}
		errs = append(errs, field.Invalid(path.Child("providerID"), nil, why))
	}
	if node.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		errs = append(errs, field.Forbidden(path.Child("externalID"), "may not be updated"))
	}
	return errs
}

func validateNodeStatus(node, _ *corev1.Node) field.ErrorList {
	errs := append(
		validateNodeResources(node),
		validateDeclaredFeatures(node.Status.DeclaredFeatures, field.NewPath("status", "declaredFeatures"))...)
	seen := map[corev1.NodeAddress]bool{}
	for i, address := range node.Status.Addresses {
		if seen[address] {
			errs = append(errs, field.Duplicate(field.NewPath("status", "addresses").Index(i), address))
		}
		seen[address] = true
	}
	return errs
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type pair struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[pair]bool{}
	for i, taint := range taints {
		at := path.Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(taint.Key, at.Child("key"))...)
		if bad := utilvalidation.IsValidLabelValue(taint.Value); len(bad) > 0 {
			errs = append(errs, field.Invalid(at.Child("value"), taint.Value, strings.Join(bad, ";")))
		}
		errs = append(errs, podspec.TaintEffect(taint.Effect, false, at.Child("effect"))...)
		if p := (pair{taint.Key, taint.Effect}); seen[p] {
			duplicate := field.Duplicate(at, taint)
			duplicate.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, duplicate)
		} else {
			seen[p] = true
		}
	}
	return errs
}
