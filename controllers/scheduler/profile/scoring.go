package profile

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// The largest values of the points of a shape.
const (
	utilizationMax = 100
	shapeScoreMax  = 10
)

// resourceWeightMax is the largest weight of a resource.
const resourceWeightMax = 100

// completeFit fills in upstream's defaults.
func completeFit(in *configv1.NodeResourcesFitArgs, path *field.Path) error {
	for i, name := range in.IgnoredResources {
		if err := checkIgnored(name, path.Child("ignoredResources").Index(i)); err != nil {
			return err
		}
	}
	for i, group := range in.IgnoredResourceGroups {
		path := path.Child("ignoredResourceGroups").Index(i)
		if strings.Contains(group, "/") {
			return field.Invalid(path, group, "a group has no /")
		}
		if err := checkIgnored(group+"/any", path); err != nil {
			return err
		}
	}
	if in.ScoringStrategy == nil {
		in.ScoringStrategy = &configv1.ScoringStrategy{Type: configv1.LeastAllocated}
	}
	return completeStrategy(in.ScoringStrategy, path.Child("scoringStrategy"))
}

// checkIgnored refuses what is not the name of an extended resource: the filter leaves out no others.
func checkIgnored(name string, path *field.Path) error {
	if errs := metav1validation.ValidateLabelName(name, path); len(errs) > 0 {
		return errs[0]
	}
	if !strings.Contains(name, "/") || strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) {
		return field.Invalid(path, strings.TrimSuffix(name, "/any"), "only extended resources can be ignored")
	}
	return nil
}

func completeStrategy(in *configv1.ScoringStrategy, path *field.Path) error {
	ratio := path.Child("requestedToCapacityRatio")
	switch in.Type {
	case configv1.RequestedToCapacityRatio:
		if in.RequestedToCapacityRatio == nil {
			return field.Required(ratio, "the strategy needs a shape")
		}
		if err := checkShape(in.RequestedToCapacityRatio.Shape, ratio.Child("shape")); err != nil {
			return err
		}
	case configv1.LeastAllocated, configv1.MostAllocated:
		if in.RequestedToCapacityRatio != nil {
			return field.Forbidden(ratio, "the strategy is another one")
		}
	default:
		return field.NotSupported(path.Child("type"), in.Type,
			[]configv1.ScoringStrategyType{configv1.LeastAllocated, configv1.MostAllocated, configv1.RequestedToCapacityRatio})
	}
	return completeResources(&in.Resources, path.Child("resources"), resourceWeightMax)
}

// completeBalance fills in upstream's defaults. Shares are compared with each other, so that weights mean nothing.
func completeBalance(in *configv1.NodeResourcesBalancedAllocationArgs, path *field.Path) error {
	return completeResources(&in.Resources, path.Child("resources"), 1)
}

// completeResources fills in CPU and memory for an empty list, and weights; it refuses names that are there twice.
func completeResources(list *[]configv1.ResourceSpec, path *field.Path, weightMax int64) error {
	if len(*list) == 0 {
		*list = []configv1.ResourceSpec{{Name: string(corev1.ResourceCPU)}, {Name: string(corev1.ResourceMemory)}}
	}
	seen := map[string]bool{}
	for i := range *list {
		r, path := &(*list)[i], path.Index(i)
		if r.Weight == 0 {
			r.Weight = 1
		}
		switch {
		case r.Name == "":
			return field.Required(path.Child("name"), "")
		case seen[r.Name]:
			return field.Duplicate(path.Child("name"), r.Name)
		case weightMax == 1 && r.Weight != 1:
			return field.Invalid(path.Child("weight"), r.Weight, "must be 1")
		case r.Weight < 0 || r.Weight > weightMax:
			return field.Invalid(path.Child("weight"), r.Weight, "must be 1 to 100")
		}
		seen[r.Name] = true
	}
	return nil
}

func checkShape(shape []configv1.UtilizationShapePoint, path *field.Path) error {
	if len(shape) == 0 {
		return field.Required(path, "at least one point")
	}
	for i, point := range shape {
		path := path.Index(i)
		switch {
		case point.Utilization < 0 || point.Utilization > utilizationMax:
			return field.Invalid(path.Child("utilization"), point.Utilization, "must be 0 to 100")
		case point.Score < 0 || point.Score > shapeScoreMax:
			return field.Invalid(path.Child("score"), point.Score, "must be 0 to 10")
		case i > 0 && shape[i-1].Utilization >= point.Utilization:
			return field.Invalid(path.Child("utilization"), point.Utilization, "must be larger than that of the point before")
		}
	}
	return nil
}
