package kstatus

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/test/judges"
)

// generated is how many objects are judged.
const generated = 20_000

// kind is what objects are generated of.
type kind struct {
	apiVersion, kind string
	// numbers and texts are the fields that a rule may read, with the values of a text.
	numbers []string
	texts   map[string][]string
	// conditions are their types, with reasons.
	conditions map[string][]string
	verdicts   []judges.Verdict // that are reached
}

var all = []judges.Verdict{judges.InProgress, judges.Done, judges.Failed, judges.Deleting}

var kinds = []kind{
	{"apps/v1", "Deployment", []string{"spec.replicas", "spec.progressDeadlineSeconds", "status.replicas", "status.updatedReplicas",
		"status.readyReplicas", "status.availableReplicas"}, nil,
		map[string][]string{"Progressing": {"ProgressDeadlineExceeded", "NewReplicaSetAvailable", "ReplicaSetUpdated"}, "Available": {"A"}}, all},
	{"apps/v1", "ReplicaSet", []string{"spec.replicas", "status.replicas", "status.fullyLabeledReplicas", "status.readyReplicas",
		"status.availableReplicas"}, nil, map[string][]string{"ReplicaFailure": {"FailedCreate"}}, all},
	{"apps/v1", "StatefulSet", []string{"spec.replicas", "spec.updateStrategy.rollingUpdate.partition", "status.replicas",
		"status.readyReplicas", "status.currentReplicas", "status.updatedReplicas"},
		map[string][]string{"spec.updateStrategy.type": {"OnDelete", "RollingUpdate", "RollingUpdate", "RollingUpdate"},
			"status.currentRevision": {"a", "b"}, "status.updateRevision": {"a", "b"}}, nil, all},
	{"apps/v1", "DaemonSet", []string{"status.desiredNumberScheduled", "status.currentNumberScheduled", "status.updatedNumberScheduled",
		"status.numberAvailable", "status.numberReady"}, nil, nil, all},
	{"batch/v1", "Job", []string{"status.active", "status.succeeded"}, map[string][]string{"status.startTime": {"2000-01-01T00:00:00Z"}},
		map[string][]string{"Complete": {"A"}, "Failed": {"A"}, "Suspended": {"A"}}, all},
	{"batch/v1", "CronJob", nil, nil, map[string][]string{"Ready": {"A"}}, all},
	{"policy/v1", "PodDisruptionBudget", []string{"status.disruptionsAllowed"}, nil, map[string][]string{"DisruptionAllowed": {"A"}, "Ready": {"A"}}, all},
	{"v1", "PersistentVolumeClaim", nil, map[string][]string{"status.phase": {"Pending", "Bound", "Lost"}}, map[string][]string{"Resizing": {"A"}}, all},
	{"v1", "Service", nil, map[string][]string{"spec.type": {"LoadBalancer", "ClusterIP"}, "spec.clusterIP": {"10.0.0.1", ""}},
		map[string][]string{"LoadBalancerPortsError": {"A"}}, all},
	{"v1", "Pod", nil, map[string][]string{"status.phase": {"Pending", "Pending", "Running", "Succeeded", "Failed", "Unknown", ""}},
		map[string][]string{"Ready": {"A"}, "PodScheduled": {"Unschedulable", "SchedulingGated"}}, append(all, judges.Unknown)},
	{"v1", "ConfigMap", nil, nil, map[string][]string{"Ready": {"A"}}, all},
	{"v1", "Secret", nil, nil, map[string][]string{"Ready": {"A"}}, all},
	{"v1", "Namespace", nil, map[string][]string{"status.phase": {"Active", "Terminating"}}, map[string][]string{"Ready": {"A"}}, all},
	{"apiextensions.k8s.io/v1", "CustomResourceDefinition", nil, nil,
		map[string][]string{"NamesAccepted": {"NoConflicts"}, "Established": {"Installing", "InitialNamesAccepted"}, "Terminating": {"A"}}, all},
	{"networking.k8s.io/v1", "Ingress", nil, nil, map[string][]string{"Ready": {"A"}}, all},
	{"example.com/v1", "Job", nil, nil, map[string][]string{"Ready": {"A"}, "Failed": {"A"}}, all},
	{"example.com/v1", "Pod", nil, map[string][]string{"status.phase": {"Pending", "Running"}}, map[string][]string{"Ready": {"A"}}, all},
	{"example.com/v1", "Widget", nil, nil, map[string][]string{"Ready": {"A"}}, all},
}

// generate makes an object whose fields are there or not.
func generate(seed uint64) *unstructured.Unstructured {
	g := rand.New(rand.NewPCG(seed, 1))
	k := kinds[g.IntN(len(kinds))]
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.apiVersion, "kind": k.kind}}
	set(o, "metadata.name", "a")
	set(o, "metadata.creationTimestamp", time.Now().Add(-time.Duration(g.IntN(2))*time.Hour).UTC().Format(time.RFC3339))
	if g.IntN(20) == 0 {
		set(o, "metadata.deletionTimestamp", "2000-01-01T00:00:00Z")
	}
	generation := 1 + g.Int64N(2)
	if g.IntN(10) > 0 {
		set(o, "metadata.generation", generation)
	}
	if g.IntN(4) > 0 {
		set(o, "status.observedGeneration", max(1, generation-g.Int64N(6)/5))
	}
	k.fill(g, o)
	return o
}

// fill sets the fields that a rule reads. Most numbers are what is asked for.
func (k kind) fill(g *rand.Rand, o *unstructured.Unstructured) {
	asked := g.Int64N(3)
	for _, field := range k.numbers {
		switch g.IntN(12) {
		case 0:
		case 1:
			set(o, field, g.Int64N(4))
		case 2:
			set(o, field, int64(math.MaxInt32))
		default:
			set(o, field, asked)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(k.texts)) {
		if values := k.texts[field]; g.IntN(6) > 0 {
			set(o, field, values[g.IntN(len(values))])
		}
	}
	k.fillConditions(g, o)
	if k.kind == "Pod" && g.IntN(3) == 0 {
		why := []any{"CrashLoopBackOff", "ContainerCreating"}[g.IntN(2)]
		set(o, "status.containerStatuses", []any{map[string]any{"name": "c", "state": map[string]any{"waiting": map[string]any{"reason": why}}}})
	}
}

// fillConditions gives it some of its conditions, and now and then those that kstatus knows of every kind.
func (k kind) fillConditions(g *rand.Rand, o *unstructured.Unstructured) {
	types := slices.Sorted(maps.Keys(k.conditions))
	if g.IntN(8) == 0 {
		types = append(types, "Reconciling", "Stalled")
	}
	var conditions []any
	for _, i := range g.Perm(len(types)) {
		if g.IntN(4) == 0 {
			continue
		}
		why := "A"
		if reasons := k.conditions[types[i]]; len(reasons) > 0 {
			why = reasons[g.IntN(len(reasons))]
		}
		state := []any{"True", "True", "False", "Unknown"}[g.IntN(4)]
		conditions = append(conditions, map[string]any{"type": types[i], "status": state, "reason": why, "message": "m"})
	}
	if len(conditions) > 0 {
		set(o, "status.conditions", conditions)
	}
}

func set(o *unstructured.Unstructured, path string, value any) {
	if err := unstructured.SetNestedField(o.Object, value, strings.Split(path, ".")...); err != nil {
		panic(err) // the table names a field below one that is no object
	}
}
