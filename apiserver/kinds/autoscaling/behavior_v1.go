package autoscaling

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// behavior is how the annotation of version 1 spells what version 2 has a field for: with
// capitals, as upstream's internal types are spelled. Either spelling is read.
type behavior struct {
	ScaleUp, ScaleDown *scalingRules
}

type scalingRules struct {
	StabilizationWindowSeconds *int32
	SelectPolicy               *autoscalingv2.ScalingPolicySelect
	Policies                   []scalingPolicy
	Tolerance                  *resource.Quantity
}

type scalingPolicy struct {
	Type          autoscalingv2.HPAScalingPolicyType
	Value         int32
	PeriodSeconds int32
}

func olderBehavior(b *autoscalingv2.HorizontalPodAutoscalerBehavior) *behavior {
	if b == nil {
		return nil
	}
	return &behavior{ScaleUp: olderRules(b.ScaleUp), ScaleDown: olderRules(b.ScaleDown)}
}

func olderRules(rules *autoscalingv2.HPAScalingRules) *scalingRules {
	if rules == nil {
		return nil
	}
	older := &scalingRules{
		StabilizationWindowSeconds: rules.StabilizationWindowSeconds,
		SelectPolicy:               rules.SelectPolicy,
		Tolerance:                  rules.Tolerance,
	}
	for _, policy := range rules.Policies {
		older.Policies = append(older.Policies, scalingPolicy(policy))
	}
	return older
}
