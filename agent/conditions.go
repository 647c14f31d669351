package agent

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/userns"
)

// PodIsolationProblem is True on a Node whose pods run without a wall that they have by default elsewhere. Pods that ask for it are
// refused there.
const PodIsolationProblem corev1.NodeConditionType = "PodIsolationProblem"

// conditions are those of the Node beside upstream's.
func (a *agent) conditions(ctx context.Context) []corev1.NodeCondition {
	return slices.Concat(a.networkConditions(), a.firewallConditions(), a.portConditions(), a.isolationConditions(ctx))
}

// isolationConditions say which walls the runtime cannot build on this machine; one that tells of none has no condition.
func (a *agent) isolationConditions(ctx context.Context) []corev1.NodeCondition {
	lacks := map[string]string{
		cri.AppArmorReady: "containers that name no AppArmor profile run without one",
		cri.SELinuxReady:  "containers have the agent's SELinux label",
	}
	if a.Settings.UserNamespaces != userns.Asked {
		lacks[cri.UserNamespacesReady] = "pods that do not ask for a user namespace have the host's users"
	}
	answer, err := a.Runtime.Status(ctx, false)
	if err != nil {
		return nil
	}
	told := false
	var problems []string
	for _, c := range answer.GetStatus().GetConditions() {
		text, wall := lacks[c.GetType()]
		told = told || wall
		if wall && !c.GetStatus() {
			problems = append(problems, text+": "+c.GetMessage())
		}
	}
	c := corev1.NodeCondition{
		Type: PodIsolationProblem, Status: corev1.ConditionFalse, Reason: "AllWalls", Message: "pods have all walls of the default",
	}
	switch {
	case !told:
		return nil
	case len(problems) > 0:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "WallsMissing", strings.Join(problems, "; ")
	}
	return []corev1.NodeCondition{c}
}
