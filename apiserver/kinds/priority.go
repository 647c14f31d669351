package kinds

import (
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Priority orders groups, and versions within one: clients see the higher first.
type Priority struct{ Group, Version int32 }

const (
	// customGroupPriority and customVersionPriority are those of custom resources.
	customGroupPriority   = 1000
	customVersionPriority = 100
	// firstGroupPriority is higher than any that a user can ask for.
	firstGroupPriority = 20001
	stableVersion      = 15
)

// groupPriorities are upstream's.
var groupPriorities = map[string]int32{
	apiregistrationv1.GroupName:    firstGroupPriority,
	"":                             18000,
	"apps":                         17800,
	"events.k8s.io":                17750,
	"authentication.k8s.io":        17700,
	"authorization.k8s.io":         17600,
	"autoscaling":                  17500,
	"batch":                        17400,
	"certificates.k8s.io":          17300,
	"networking.k8s.io":            17200,
	"policy":                       17100,
	"rbac.authorization.k8s.io":    17000,
	"storage.k8s.io":               16800,
	"admissionregistration.k8s.io": 16700,
	"apiextensions.k8s.io":         16700,
	"scheduling.k8s.io":            16600,
	"coordination.k8s.io":          16500,
	"node.k8s.io":                  16300,
	"discovery.k8s.io":             16200,
	"resource.k8s.io":              16200,
	"flowcontrol.apiserver.k8s.io": 16100,
	"storagemigration.k8s.io":      15800,
	"metrics.k8s.io":               100, // metrics-server's
}

// versionPriorities are those of upstream's that are not stableVersion.
var versionPriorities = map[schema.GroupVersion]int32{
	{Version: "v1"}:                                        1,
	{Group: "autoscaling", Version: "v2"}:                  30,
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}: 21,
	{Group: "resource.k8s.io", Version: "v1"}:              21,
	{Group: "metrics.k8s.io", Version: "v1beta1"}:          100,
}

// PriorityOf tells where a group version stands among all.
func PriorityOf(gv schema.GroupVersion) Priority {
	group, known := groupPriorities[gv.Group]
	if !known {
		return Priority{customGroupPriority, customVersionPriority}
	}
	if version, known := versionPriorities[gv]; known {
		return Priority{group, version}
	}
	return Priority{group, stableVersion}
}

// Priorities is PriorityOf in two numbers.
func Priorities(gv schema.GroupVersion) (group, version int32) {
	p := PriorityOf(gv)
	return p.Group, p.Version
}
