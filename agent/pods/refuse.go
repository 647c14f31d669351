package pods

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/backoff"
	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/internal/podfields"
)

// refusal is why a pod must not start here, and when it fails for it.
type refusal struct {
	why *status.Rejection
	at  time.Time
}

// judge looks once, before anything of the pod runs, for fields that this node refuses or drops. It returns why the pod is refused, also
// if it was before.
func (w *worker) judge(ctx context.Context, v view) (refusal, error) {
	if w.judged || !v.runtime.Empty() || v.gone || v.pod.DeletionTimestamp != nil || finished(v.pod) {
		return v.refused, nil
	}
	node, err := nodeOf(ctx, w.m.Runtime)
	if err != nil {
		return refusal{}, err
	}
	w.judged = true
	findings := podfields.Find(&v.pod.Spec, "spec", node)
	for _, f := range findings {
		if f.Verdict == podfields.Dropped {
			w.m.Events.Event(events.Pod(v.pod), corev1.EventTypeWarning, events.FieldIgnored, f.String())
		}
	}
	if why := rejectionFor(findings); why != nil {
		return w.refuse(v.pod, why), nil
	}
	return v.refused, nil
}

// refuse has the pod fail: of one owner's pods the first at once, the next ones later.
func (w *worker) refuse(pod *corev1.Pod, why *status.Rejection) refusal {
	now := time.Now()
	r := refusal{why: why, at: now.Add(w.m.refusals.wait(pod, now))}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = r
	return r
}

// rejectionFor names every field for which a pod is refused; nil if there is none.
func rejectionFor(findings []podfields.Finding) *status.Rejection {
	var fields []string
	for _, f := range podfields.Refusals(findings) {
		if f.Path == "spec.os.name" { // upstream's reason and message
			return &status.Rejection{Reason: "PodOSNotSupported", Message: "Failed to admit pod as the OS field doesn't match node OS"}
		}
		fields = append(fields, f.Path+": "+f.Why)
	}
	if fields == nil {
		return nil
	}
	return &status.Rejection{
		Reason:  events.FieldNotSupported,
		Message: "Pod was rejected: this node does not support " + strings.Join(fields, "; "),
	}
}

// checkEphemeral refuses a container that came after the pod was judged.
func (w *worker) checkEphemeral(ctx context.Context, v view, name string) error {
	for i := range v.pod.Spec.EphemeralContainers {
		if v.pod.Spec.EphemeralContainers[i].Name != name {
			continue
		}
		node, err := nodeOf(ctx, w.m.Runtime)
		if err != nil {
			return err
		}
		only := &corev1.PodSpec{EphemeralContainers: v.pod.Spec.EphemeralContainers[i : i+1]}
		if why := rejectionFor(podfields.Find(only, "spec", node)); why != nil {
			return &fieldError{why.Message}
		}
	}
	return nil
}

type fieldError struct{ message string }

func (e *fieldError) Error() string { return e.message }

// nodeOf asks the runtime what it can do. What CRI has no word for is a remote runtime's own business.
func nodeOf(ctx context.Context, runtime cri.Runtime) (podfields.Node, error) {
	if limited, ok := runtime.(cri.Limited); ok {
		return limited.Can(), nil
	}
	answer, err := runtime.Status(ctx, false)
	if err != nil {
		return podfields.Node{}, err
	}
	node := podfields.Node{
		HostPorts6:               true,
		HugePageLimits:           true,
		SELinux:                  true,
		AppArmor:                 true,
		SupplementalGroupsPolicy: answer.GetFeatures().GetSupplementalGroupsPolicy(),
	}
	handlers := answer.GetRuntimeHandlers()
	node.RecursiveReadOnly = allHave(handlers, (*runtimeapi.RuntimeHandlerFeatures).GetRecursiveReadOnlyMounts)
	node.UserNamespaces = allHave(handlers, (*runtimeapi.RuntimeHandlerFeatures).GetUserNamespaces)
	return node, nil
}

// allHave: every handler must have a feature, since which one runs the pod is known later.
func allHave(handlers []*runtimeapi.RuntimeHandler, feature func(*runtimeapi.RuntimeHandlerFeatures) bool) bool {
	for _, h := range handlers {
		if !feature(h.GetFeatures()) {
			return false
		}
	}
	return len(handlers) > 0
}

// refusedOwnersMax bounds the owners that are remembered; beyond it all are forgotten, which costs a few pods.
const refusedOwnersMax = 1000

// refusals spaces the failures of one owner's pods: a ReplicaSet makes the next pod as soon as one has failed, and would
// fill the cluster with failed pods.
type refusals struct {
	mu     sync.Mutex
	owners map[types.UID]*refusedOwner
}

type refusedOwner struct {
	backoff.Backoff
	last time.Time
}

// wait is how long the pod stays pending before it fails: not at all for the first of its owner.
func (r *refusals) wait(pod *corev1.Pod, now time.Time) time.Duration {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.owners[owner.UID]
	if o == nil {
		if r.owners == nil || len(r.owners) >= refusedOwnersMax {
			r.owners = map[types.UID]*refusedOwner{}
		}
		o = &refusedOwner{}
		r.owners[owner.UID] = o
	} else {
		o.Next(o.last, now)
	}
	o.last = now
	return o.Delay()
}
