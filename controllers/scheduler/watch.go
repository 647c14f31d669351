package scheduler

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/scheduler/devices"
	"github.com/setpoint-io/setpoint/controllers/scheduler/owners"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// Reads are what the scheduler reads from caches: what it cannot work without, and what of the rest is served.
func Reads(serves func(schema.GroupVersionResource) bool) []reconcile.Read {
	reads := []reconcile.Read{reconcile.Nodes, reconcile.Namespaces, reconcile.Pods}
	for _, resource := range []schema.GroupVersionResource{
		owners.Services, owners.ReplicationControllers, owners.ReplicaSets, owners.StatefulSets, disruptionBudgets,
	} {
		if serves(resource) {
			reads = append(reads, reconcile.Declaration{Resource: resource})
		}
	}
	return append(reads, claimReads(serves)...)
}

// claimReads are the kinds that tell what a pod's claims need.
func claimReads(serves func(schema.GroupVersionResource) bool) []reconcile.Read {
	return append(volumeReads(), deviceReads(serves)...)
}

func volumeReads() []reconcile.Read {
	return []reconcile.Read{
		reconcile.PersistentVolumeClaims,
		reconcile.PersistentVolumes,
		reconcile.Declaration{Resource: storageClasses},
		reconcile.Declaration{Resource: csiNodes},
		reconcile.Declaration{Resource: volumeAttachments},
		reconcile.Declaration{Resource: csiDrivers},
		reconcile.Declaration{Resource: csiStorageCapacities},
	}
}

// deviceReads are the kinds that tell which devices there are, and who has them.
func deviceReads(serves func(schema.GroupVersionResource) bool) []reconcile.Read {
	var reads []reconcile.Read
	for _, resource := range []schema.GroupVersionResource{resourceClaims, resourceSlices, deviceClasses, deviceTaintRules} {
		if serves(resource) {
			reads = append(reads, reconcile.Declaration{Resource: resource})
		}
	}
	return reads
}

// informersOf are the informers of what is read.
func informersOf(f informers.SharedInformerFactory, reads []reconcile.Read) ([]toolscache.SharedIndexInformer, error) {
	var found []toolscache.SharedIndexInformer
	for _, read := range reads {
		informer, err := f.ForResource(read.Declaration().Resource)
		if err != nil {
			return nil, err
		}
		found = append(found, informer.Informer())
	}
	return found, nil
}

// The kinds the scheduler takes into account if they are served.
var (
	storageClasses       = storagev1.SchemeGroupVersion.WithResource("storageclasses")
	csiNodes             = storagev1.SchemeGroupVersion.WithResource("csinodes")
	volumeAttachments    = storagev1.SchemeGroupVersion.WithResource("volumeattachments")
	csiDrivers           = storagev1.SchemeGroupVersion.WithResource("csidrivers")
	csiStorageCapacities = storagev1.SchemeGroupVersion.WithResource("csistoragecapacities")
	resourceClaims       = resourcev1.SchemeGroupVersion.WithResource("resourceclaims")
	resourceSlices       = resourcev1.SchemeGroupVersion.WithResource("resourceslices")
	deviceClasses        = resourcev1.SchemeGroupVersion.WithResource("deviceclasses")
	deviceTaintRules     = resourcev1.SchemeGroupVersion.WithResource("devicetaintrules")
	disruptionBudgets    = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
)

// watch feeds cache and queue from the informers and returns when they have seen all that exists. The returned function
// stops feeding; it is never nil.
func (s *scheduler) watch(ctx context.Context, cfg Config) (stop func(), err error) {
	var removals []func() error
	stop = func() {
		for _, remove := range removals {
			_ = remove() // fails only for an informer that has stopped, which feeds nobody
		}
	}
	var synced []toolscache.DoneChecker
	add := func(informer toolscache.SharedIndexInformer, handler toolscache.ResourceEventHandler) {
		registration, addErr := informer.AddEventHandler(handler)
		if addErr != nil {
			err = errors.Join(err, addErr)
			return
		}
		removals = append(removals, func() error { return informer.RemoveEventHandler(registration) })
		synced = append(synced, registration.HasSyncedChecker())
	}
	f := cfg.Informers
	add(f.Core().V1().Nodes().Informer(), handler(s.nodeChanged, s.nodeGone))
	add(f.Core().V1().Namespaces().Informer(), handler(s.namespaceChanged, func(*corev1.Namespace) {}))
	add(f.Core().V1().Pods().Informer(), s.podHandler())
	claims, claimsErr := informersOf(f, volumeReads())
	for _, informer := range claims {
		add(informer, s.claimHandler())
	}
	devicesErr := s.watchDevices(cfg, add)
	all, allErr := informersOf(f, Reads(cfg.serves))
	for _, informer := range all {
		synced = append(synced, informer.HasSyncedChecker())
	}
	err = errors.Join(err, claimsErr, devicesErr, allErr)
	if err == nil {
		toolscache.WaitFor(ctx, "", synced...) // reacts at once, where WaitForCacheSync polls
	}
	return stop, err
}

// watchDevices wakes the pods that a change may help: of a claim those that use it, unless its devices are free now.
func (s *scheduler) watchDevices(cfg Config, add func(toolscache.SharedIndexInformer, toolscache.ResourceEventHandler)) error {
	for _, read := range deviceReads(cfg.serves) {
		found, err := informersOf(cfg.Informers, []reconcile.Read{read})
		if err != nil {
			return err
		}
		switch read.Declaration().Resource {
		case resourceClaims:
			add(found[0], devices.Handler(s.deviceClaimChanged))
		case deviceClasses:
			add(found[0], s.waker(plugin.ClassChanged))
		default:
			add(found[0], s.waker(plugin.DevicesChanged))
		}
	}
	return nil
}

// handler makes informer callbacks from a function for a present object and one for a deleted object.
func handler[T any](changed, gone func(T)) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { changed(object.(T)) },
		UpdateFunc: func(_, object any) { changed(object.(T)) },
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			if last, ok := object.(T); ok {
				gone(last)
			}
		},
	}
}

// podHandler is handler for pods, where a name may be taken by another pod between two looks.
func (s *scheduler) podHandler() toolscache.ResourceEventHandlerFuncs {
	h := handler(s.podChanged, s.podGone)
	h.UpdateFunc = func(before, object any) {
		old, pod := before.(*corev1.Pod), object.(*corev1.Pod)
		if old.UID != pod.UID {
			s.podGone(old)
		}
		s.podChanged(pod)
	}
	return h
}

// claimHandler wakes pods that wait for claims, whatever changed: there are few of them.
func (s *scheduler) claimHandler() toolscache.ResourceEventHandlerFuncs {
	return s.waker(plugin.ClaimChanged)
}

// deviceClaimChanged wakes all pods that wait for devices when a claim gives some back, and else the pods that use the claim.
func (s *scheduler) deviceClaimChanged(claim types.NamespacedName, freed bool) {
	s.claims.limits.version.Add(1)
	if freed {
		s.queue.wake(plugin.DevicesChanged)
	} else {
		s.queue.wakeUsers(claim)
	}
}

func (s *scheduler) waker(event plugin.Event) toolscache.ResourceEventHandlerFuncs {
	wake := func(any) {
		s.claims.limits.version.Add(1)
		s.queue.wake(event)
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, _ any) { wake(nil) }, DeleteFunc: wake}
}

func (s *scheduler) nodeChanged(node *corev1.Node) {
	s.mu.Lock()
	events := s.cache.setNode(node)
	s.mu.Unlock()
	s.queue.wake(events)
}

func (s *scheduler) nodeGone(node *corev1.Node) {
	s.mu.Lock()
	events := s.cache.removeNode(node.Name)
	s.mu.Unlock()
	s.queue.wake(events)
}

func (s *scheduler) namespaceChanged(namespace *corev1.Namespace) {
	s.mu.Lock()
	changed, stale := s.cache.setNamespace(namespace.Name, labels.Set(namespace.Labels))
	if stale {
		for _, e := range s.engines {
			e.reset()
		}
	}
	s.mu.Unlock()
	if changed {
		s.queue.wake(plugin.NamespaceLabels)
	}
}

// podChanged sorts a pod to where it belongs: on its node, in the queue, or nowhere.
func (s *scheduler) podChanged(pod *corev1.Pod) {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		s.podGone(pod)
	case pod.Spec.NodeName != "":
		s.mu.Lock()
		events := s.cache.setPod(pod) | s.cache.denominate(pod.UID)
		s.mu.Unlock()
		s.queue.remove(pod.UID)
		s.report.drop(pod.UID)
		s.queue.wake(events)
	case s.engines[pod.Spec.SchedulerName] == nil || pod.DeletionTimestamp != nil:
		s.queue.remove(pod.UID)
	case len(pod.Spec.SchedulingGates) > 0:
		s.queue.remove(pod.UID)
		s.report.unschedulable(pod, corev1.PodReasonSchedulingGated, gatedMessage, nil)
	default:
		s.enqueue(pod)
	}
}

// gatedMessage is upstream's.
const gatedMessage = "Scheduling is blocked due to non-empty scheduling gates"

// enqueue offers a pod without node to the queue, unless it was placed here and the watch just does not know yet.
func (s *scheduler) enqueue(pod *corev1.Pod) {
	s.mu.Lock()
	placed := s.cache.placed(pod.UID)
	if node := pod.Status.NominatedNodeName; !placed && node != "" && !s.queue.has(pod.UID) {
		s.cache.nominate(plugin.NewPod(pod), node) // room was made for it in an earlier term
	}
	s.mu.Unlock()
	if !placed {
		s.queue.set(pod)
	}
}

func (s *scheduler) podGone(pod *corev1.Pod) {
	s.mu.Lock()
	events := s.cache.removePod(pod.UID) | s.cache.denominate(pod.UID)
	s.mu.Unlock()
	s.queue.remove(pod.UID)
	s.report.drop(pod.UID)
	s.queue.wake(events)
}

// catchUp looks again at a pod whose changes were not looked at while it was assumed.
func (s *scheduler) catchUp(pod *corev1.Pod) {
	latest, err := s.pods.Pods(pod.Namespace).Get(pod.Name)
	if err == nil && latest.UID == pod.UID {
		s.podChanged(latest)
	}
}
