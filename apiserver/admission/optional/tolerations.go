package optional

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubectl/pkg/util/qos"
)

// Annotations of a namespace: what its pods tolerate beside what they say, and what they may tolerate at most, as JSON.
const (
	defaultTolerations   = "scheduler.alpha.kubernetes.io/defaultTolerations"
	tolerationsWhitelist = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
)

// tolerations gives the pods of a namespace the tolerations of its annotations, and holds them to these; the configuration says what counts
// where there are none.
type tolerations struct {
	onWrite
	config     Config
	configured tolerationsFile
}

// tolerationsFile is upstream's format.
type tolerationsFile struct {
	metav1.TypeMeta `json:",inline"`

	Default   []corev1.Toleration `json:"default,omitempty"`
	Whitelist []corev1.Toleration `json:"whitelist,omitempty"`
}

func newTolerations(c Config) (admission.Interface, error) {
	t := tolerations{config: c}
	err := readVersioned(c.Configuration("PodTolerationRestriction"), "podtolerationrestriction.admission.k8s.io/v1alpha1",
		&t.configured.TypeMeta, &t.configured)
	return t, err
}

// Admit implements admission.MutationInterface.
func (t tolerations) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	var more []corev1.Toleration
	if a.GetOperation() == admission.Create {
		var err error
		if more, err = t.of(ctx, a, defaultTolerations, t.configured.Default); err != nil {
			return err
		}
	}
	if qualityOf(pod) != corev1.PodQOSBestEffort {
		more = append(slices.Clone(more), corev1.Toleration{
			Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	if len(more) > 0 {
		pod.Spec.Tolerations = mergeTolerations(slices.Concat(pod.Spec.Tolerations, more))
	}
	return t.Validate(ctx, a, o)
}

// Validate implements admission.ValidationInterface.
func (t tolerations) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil || len(pod.Spec.Tolerations) == 0 {
		return nil
	}
	allowed, err := t.of(ctx, a, tolerationsWhitelist, nil)
	if err != nil {
		return err
	}
	scope := "namespace"
	if allowed == nil {
		allowed, scope = t.configured.Whitelist, "cluster"
	}
	for _, one := range pod.Spec.Tolerations {
		if len(allowed) > 0 && !slices.ContainsFunc(allowed, func(w corev1.Toleration) bool { return covers(w, one) }) {
			return admission.NewForbidden(a, fmt.Errorf(
				"pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist", scope))
		}
	}
	return nil
}

// of reads an annotation of the namespace: an empty one is an empty list, and without it there is another.
func (t tolerations) of(
	ctx context.Context, a admission.Attributes, annotation string, without []corev1.Toleration,
) ([]corev1.Toleration, error) {
	namespace, err := t.config.Namespace(ctx, a.GetNamespace())
	if err != nil {
		return nil, err
	}
	text, annotated := namespace.Annotations[annotation]
	if !annotated {
		return without, nil
	}
	list := []corev1.Toleration{}
	if text == "" {
		return list, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, admission.NewForbidden(a, fmt.Errorf("annotation %s of the namespace: %w", annotation, err))
	}
	return list, nil
}

func qualityOf(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return qos.ComputePodQOS(pod)
}

// mergeTolerations leaves out what another one covers; of equal ones the first stays.
func mergeTolerations(all []corev1.Toleration) (merged []corev1.Toleration) {
	for i, t := range all {
		coversIt := func(other corev1.Toleration) bool { return covers(other, t) }
		laterAndWider := func(other corev1.Toleration) bool {
			return !apiequality.Semantic.DeepEqual(other, t) && covers(other, t)
		}
		if !slices.ContainsFunc(merged, coversIt) && !slices.ContainsFunc(all[i+1:], laterAndWider) {
			merged = append(merged, t)
		}
	}
	return merged
}

// covers reports whether whoever tolerates wide tolerates t too.
func covers(wide, t corev1.Toleration) bool {
	everyKey := wide.Key == "" && wide.Operator == corev1.TolerationOpExists
	switch {
	case apiequality.Semantic.DeepEqual(wide, t):
		return true
	case t.Key != wide.Key && !everyKey, t.Effect != wide.Effect && wide.Effect != "", shorter(wide, t):
		return false
	case wide.Operator == corev1.TolerationOpExists:
		return true
	default: // empty is Equal; but a toleration that leaves it out is not compared, as upstream
		return (wide.Operator == "" || wide.Operator == corev1.TolerationOpEqual) && t.Operator == corev1.TolerationOpEqual && t.Value == wide.Value
	}
}

// shorter reports whether wide ends before t does.
func shorter(wide, t corev1.Toleration) bool {
	return wide.Effect == corev1.TaintEffectNoExecute && wide.TolerationSeconds != nil &&
		(t.TolerationSeconds == nil || *t.TolerationSeconds > *wide.TolerationSeconds)
}
