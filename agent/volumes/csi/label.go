package csi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// A volume may be mounted with one SELinux label for all its files, in place of giving it to each (KEP-1710): its driver can mount
// with a context, and the containers that use it name their label.

// mountLabel is that label, "" for none.
func (m *Manager) mountLabel(t *task) (string, error) {
	if m.FileLabel == nil || !t.info.mountsLabelled || t.PV == nil || t.paths.block || changesFiles(t.Pod) {
		return "", nil
	}
	labels := sets.New[string]()
	for _, c := range slices.Concat(t.Pod.Spec.InitContainers, t.Pod.Spec.Containers) {
		if !slices.ContainsFunc(c.VolumeMounts, func(vm corev1.VolumeMount) bool { return vm.Name == t.Name }) {
			continue
		}
		label, err := m.FileLabel(podconfig.SELinux(t.Pod, &c))
		if err != nil {
			return "", err
		}
		labels.Insert(label)
	}
	if labels.Len() > 1 {
		return "", fmt.Errorf("multiple SELinux labels found: %s", strings.Join(sets.List(labels), ","))
	}
	label, _ := labels.PopAny()
	return label, nil
}

// changesFiles: the pod wants a label for each file, since others with another label use the volume too.
func changesFiles(pod *corev1.Pod) bool {
	sc := pod.Spec.SecurityContext
	return sc != nil && sc.SELinuxChangePolicy != nil && *sc.SELinuxChangePolicy == corev1.SELinuxChangePolicyRecursive
}

// mountOptions are those of the volume. A label has commas, which quotes keep together.
func (t *task) mountOptions() []string {
	if t.label == "" {
		return t.source.options
	}
	return append(slices.Clone(t.source.options), fmt.Sprintf("context=%q", t.label))
}

// agree sees to it that the volume is not mounted with another label, which only one that no other pod has can be changed in. The
// caller has the turn.
func (m *Manager) agree(ctx context.Context, t *task, v *volume) error {
	if v.label == t.label {
		return nil
	}
	taken, err := m.taken(t, v)
	if err != nil {
		return err
	}
	if taken {
		return fmt.Errorf("conflicting SELinux labels of volume %s: %q and %q", t.specName(), v.label, t.label)
	}
	if err := m.unstage(ctx, t.id, v); err != nil {
		return err
	}
	v.label = t.label
	return nil
}
