package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// validateProbes: liveness and startup succeed at once, and readiness never kills,
// so it cannot say how long a kill may take.
func validateProbes(c *corev1.Container, path *field.Path) field.ErrorList {
	errs := validateProbe(c.LivenessProbe, path.Child("livenessProbe"))
	errs = append(errs, validateProbe(c.ReadinessProbe, path.Child("readinessProbe"))...)
	errs = append(errs, validateProbe(c.StartupProbe, path.Child("startupProbe"))...)
	if p := c.LivenessProbe; p != nil && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("livenessProbe", "successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	if p := c.StartupProbe; p != nil && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("startupProbe", "successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	if p := c.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		errs = append(
			errs,
			field.Invalid(
				path.Child("readinessProbe", "terminationGracePeriodSeconds"),
				*p.TerminationGracePeriodSeconds,
				"must not be set for readinessProbes",
			),
		)
	}
	return errs
}

func validateProbe(probe *corev1.Probe, path *field.Path) field.ErrorList {
	if probe == nil {
		return nil
	}
	errs := validateHandler(handler{probe.Exec, probe.HTTPGet, probe.TCPSocket, probe.GRPC, nil}, 0, path)
	rule.Nonnegative(&errs, probe.InitialDelaySeconds, path.Child("initialDelaySeconds"))
	rule.Nonnegative(&errs, probe.TimeoutSeconds, path.Child("timeoutSeconds"))
	rule.Nonnegative(&errs, probe.PeriodSeconds, path.Child("periodSeconds"))
	rule.Nonnegative(&errs, probe.SuccessThreshold, path.Child("successThreshold"))
	rule.Nonnegative(&errs, probe.FailureThreshold, path.Child("failureThreshold"))
	if grace := probe.TerminationGracePeriodSeconds; grace != nil && *grace <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *grace, "must be greater than 0"))
	}
	return errs
}

func validateLifecycle(lifecycle *corev1.Lifecycle, spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if lifecycle == nil {
		return nil
	}
	var errs field.ErrorList
	grace := ptr.Deref(spec.TerminationGracePeriodSeconds, 0)
	if h := lifecycle.PostStart; h != nil {
		errs = append(errs, validateHandler(handler{h.Exec, h.HTTPGet, h.TCPSocket, nil, h.Sleep}, grace, path.Child("postStart"))...)
	}
	if h := lifecycle.PreStop; h != nil {
		errs = append(errs, validateHandler(handler{h.Exec, h.HTTPGet, h.TCPSocket, nil, h.Sleep}, grace, path.Child("preStop"))...)
	}
	if lifecycle.StopSignal != nil && spec.OS == nil {
		errs = append(errs, field.Forbidden(path.Child("stopSignal"), "may not be set for containers with empty `spec.os.name`"))
	}
	return errs
}

// handler is what probes and lifecycle hooks have in common: one way to act.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func validateHandler(h handler, graceSeconds int64, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	count := 0
	one := func(name string, set bool, validate func(*field.Path) field.ErrorList) {
		if !set {
			return
		}
		if count++; count > 1 {
			errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 handler type"))
			return
		}
		errs = append(errs, validate(path.Child(name))...)
	}
	one("exec", h.exec != nil, h.validateExec)
	one("httpGet", h.http != nil, h.validateHTTP)
	one("tcpSocket", h.tcp != nil, func(at *field.Path) field.ErrorList { return rule.PortOrName(h.tcp.Port, at.Child("port")) })
	one("grpc", h.grpc != nil, func(at *field.Path) field.ErrorList { return rule.Port(h.grpc.Port, at.Child("port")) })
	one("sleep", h.sleep != nil, func(at *field.Path) field.ErrorList { return h.validateSleep(graceSeconds, at) })
	if count == 0 {
		errs = append(errs, field.Required(path, "must specify a handler type"))
	}
	return errs
}

func (h handler) validateExec(path *field.Path) field.ErrorList {
	if len(h.exec.Command) == 0 {
		return field.ErrorList{field.Required(path.Child("command"), "")}
	}
	return nil
}

func (h handler) validateHTTP(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if h.http.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	}
	errs = append(errs, rule.PortOrName(h.http.Port, path.Child("port"))...)
	errs = append(errs, rule.OneOf(h.http.Scheme, []corev1.URIScheme{corev1.URISchemeHTTP, corev1.URISchemeHTTPS}, path.Child("scheme"))...)
	for _, header := range h.http.HTTPHeaders {
		errs = append(errs, rule.Invalid(header.Name, utilvalidation.IsHTTPHeaderName(header.Name), path.Child("httpHeaders"))...)
	}
	return errs
}

func (h handler) validateSleep(graceSeconds int64, path *field.Path) field.ErrorList {
	if seconds := h.sleep.Seconds; seconds < 0 || seconds > graceSeconds {
		return field.ErrorList{field.Invalid(path, seconds,
			fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", graceSeconds))}
	}
	return nil
}
