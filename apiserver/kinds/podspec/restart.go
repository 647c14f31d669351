package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// Limits of the rules by which a container restarts.
const (
	restartRulesMax     = 20
	restartExitCodesMax = 255
)

var (
	containerRestarts = []corev1.ContainerRestartPolicy{
		corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure,
	}
	restartActions = []corev1.ContainerRestartRuleAction{
		corev1.ContainerRestartRuleActionRestart,
		corev1.ContainerRestartRuleActionRestartAllContainers,
	}
	restartOperators = []corev1.ContainerRestartRuleOnExitCodesOperator{
		corev1.ContainerRestartRuleOnExitCodesOpIn,
		corev1.ContainerRestartRuleOnExitCodesOpNotIn,
	}
	resizeResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	resizePolicies  = []corev1.ResourceResizeRestartPolicy{corev1.NotRequired, corev1.RestartContainer}
)

// validateRestart judges when a container restarts, where it says so for itself.
func validateRestart(c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	rules, at := c.RestartPolicyRules, path.Child("restartPolicyRules")
	switch {
	case c.RestartPolicy != nil:
		errs = append(errs, rule.OneOf(*c.RestartPolicy, containerRestarts, path.Child("restartPolicy"))...)
	case len(rules) > 0:
		errs = append(errs, field.Required(path.Child("restartPolicy"), "must specify restartPolicy when restart rules are used"))
	}
	if len(rules) > restartRulesMax {
		errs = append(errs, field.TooMany(at, len(rules), restartRulesMax))
	}
	for i := range rules {
		errs = append(errs, rule.OneOf(rules[i].Action, restartActions, at.Index(i).Child("action"))...)
		codes, codesPath := rules[i].ExitCodes, at.Index(i).Child("exitCodes")
		if codes == nil {
			errs = append(errs, field.Required(codesPath, "must be specified"))
			continue
		}
		errs = append(errs, rule.OneOf(codes.Operator, restartOperators, codesPath.Child("operator"))...)
		if n := len(codes.Values); n > restartExitCodesMax {
			errs = append(errs, field.TooMany(codesPath.Child("values"), n, restartExitCodesMax))
		}
	}
	return errs
}

// validateResizePolicy judges what a change of resources does to a running container.
func validateResizePolicy(policies []corev1.ContainerResizePolicy, restarts corev1.RestartPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[corev1.ResourceName]bool{}
	for i, policy := range policies {
		if seen[policy.ResourceName] {
			errs = append(errs, field.Duplicate(path.Index(i), policy.ResourceName))
		}
		seen[policy.ResourceName] = true
		errs = append(errs, rule.RequiredOneOf(policy.ResourceName, resizeResources, path)...)
		errs = append(errs, rule.RequiredOneOf(policy.RestartPolicy, resizePolicies, path)...)
		if restarts == corev1.RestartPolicyNever && policy.RestartPolicy != corev1.NotRequired {
			errs = append(errs, field.Invalid(path, policy.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
		}
	}
	return errs
}
