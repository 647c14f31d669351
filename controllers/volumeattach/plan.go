package volumeattach

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxWaitForUnmount is how long an unhealthy node may keep a volume that nobody uses. Upstream's.
	maxWaitForUnmount = 6 * time.Minute
	// attachTimeout is how long a driver may take before the pods are told. It may go on. Upstream's.
	attachTimeout = 2 * time.Minute
	// managedAnnotation is set by a kubelet that leaves attaching to the control plane.
	managedAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach"
)

// nodePlan is what a pass does, in this order: report, detach, attach.
type nodePlan struct {
	report   []corev1.AttachedVolume // what the node's status lists from now on
	rewrite  bool                    // report differs from what it lists
	detach   []detachment
	attach   []*want
	attached []*want // those that the report lists for the first time
	failed   []failure
	// unused are the attachments that no pod uses.
	unused []*storagev1.VolumeAttachment
	again  time.Duration
}

type detachment struct {
	attachment *storagev1.VolumeAttachment
	forced     bool // the node is not asked whether it still uses the volume
}

// failure is an attachment that the driver could not make.
type failure struct {
	want    *want
	message string
}

// planNode says what a node needs.
func planNode(view nodeView) nodePlan {
	plan := nodePlan{report: []corev1.AttachedVolume{}}
	if view.node != nil && !managed(view.node) {
		return plan
	}
	wants := map[string]*want{}
	for _, w := range view.wants {
		wants[w.name] = w
	}
	held := map[string]bool{}
	for _, h := range view.has {
		held[h.attachment.Name] = true
		plan.judge(view, h, wants[h.attachment.Name])
	}
	for _, w := range view.wants {
		if !held[w.name] && view.node != nil {
			plan.attach = append(plan.attach, w)
		}
	}
	plan.compare(view.node, wants)
	return plan
}

// judge decides about one attachment; w is nil if no pod wants it.
func (p *nodePlan) judge(view nodeView, h *holding, w *want) {
	a := h.attachment
	used := w != nil || h.claimed
	if !used {
		p.unused = append(p.unused, a)
	}
	if a.DeletionTimestamp != nil {
		return // it is being detached
	}
	if !used {
		if detaches, forced := p.releases(view, h); detaches {
			p.detach = append(p.detach, detachment{a, forced})
			return
		}
	}
	switch {
	case a.Status.Attached:
		if h.title != "" {
			p.report = append(p.report, corev1.AttachedVolume{Name: h.title})
		}
	case w == nil:
	case a.Status.AttachError != nil:
		p.failed = append(p.failed, failure{w, a.Status.AttachError.Message})
	default:
		p.awaits(view, a, w)
	}
}

// awaits complains of a driver that does nothing for too long.
func (p *nodePlan) awaits(view nodeView, a *storagev1.VolumeAttachment, w *want) {
	if left := attachTimeout - view.now.Sub(a.CreationTimestamp.Time); left > 0 {
		p.callAgain(left)
		return
	}
	p.failed = append(p.failed, failure{w, fmt.Sprintf("timed out waiting for external-attacher of %v CSI driver to attach volume %v",
		a.Spec.Attacher, w.volume.Spec.CSI.VolumeHandle)})
}

// releases tells whether an unused volume may be detached, and whether although the node may still use it.
func (p *nodePlan) releases(view nodeView, h *holding) (detaches, forced bool) {
	since := h.since
	if since.IsZero() {
		since = view.now
	}
	waited := view.now.Sub(since)
	forced = outOfService(view.node) || waited > maxWaitForUnmount && !healthy(view.node)
	if !view.inUse[h.attachment.Name] || forced {
		return true, forced
	}
	if !healthy(view.node) {
		p.callAgain(maxWaitForUnmount - waited + time.Millisecond)
	}
	return false, false
}

// callAgain asks for a pass after a pause, or sooner.
func (p *nodePlan) callAgain(after time.Duration) {
	if p.again == 0 || after < p.again {
		p.again = after
	}
}

// compare finds out what changes in the node's status.
func (p *nodePlan) compare(node *corev1.Node, wants map[string]*want) {
	slices.SortFunc(p.report, func(a, b corev1.AttachedVolume) int { return strings.Compare(string(a.Name), string(b.Name)) })
	if node == nil {
		return
	}
	listed := map[corev1.UniqueVolumeName]bool{}
	for _, v := range node.Status.VolumesAttached {
		listed[v.Name] = true
	}
	p.rewrite = len(listed) != len(p.report) || len(node.Status.VolumesAttached) != len(p.report)
	for _, v := range p.report {
		if listed[v.Name] {
			continue
		}
		p.rewrite = true
		if w := wants[attachmentNamed(v.Name, node.Name)]; w != nil {
			p.attached = append(p.attached, w)
		}
	}
}

func managed(node *corev1.Node) bool { return metav1.HasAnnotation(node.ObjectMeta, managedAnnotation) }

func outOfService(node *corev1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// healthy tells whether a node is there and ready.
func healthy(node *corev1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
