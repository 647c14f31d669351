package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/scheduler/devices"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
	"github.com/setpoint-io/setpoint/controllers/scheduler/storageroom"
	"github.com/setpoint-io/setpoint/controllers/scheduler/volumebinding"
)

// claims looks up what the volume claims and resource claims of a pod require. Its errors are the words of upstream's
// scheduler for why a pod fits on no node, whatever the nodes are.
type claims struct {
	volumeClaims corelisters.PersistentVolumeClaimLister
	volumes      corelisters.PersistentVolumeLister
	classes      storagelisters.StorageClassLister
	allocation   *devices.World            // guarded by scheduler.mu
	patience     map[string]devices.Limits // by schedulerName

	clock  clock.PassiveClock
	limits limits
	rooms  storageroom.Rooms

	// What is promised to pods that are being bound is guarded by scheduler.mu: volumes to claims, and claims to nodes.
	promised map[string]types.UID
	selected map[types.UID]string
}

// Upstream's words.
var (
	errUnboundClaims = errors.New("pod has unbound immediate PersistentVolumeClaims")
)

func newClaims(cfg Config) *claims {
	core, storage, patience := cfg.Informers.Core().V1(), cfg.Informers.Storage().V1(), map[string]devices.Limits{}
	for _, p := range cfg.Profiles.Or(profile.Default()).Profiles {
		patience[p.Name] = devices.Limits{Search: p.DeviceSearchMax, Binding: p.DeviceWaitMax}
	}
	return &claims{
		volumeClaims: core.PersistentVolumeClaims().Lister(),
		volumes:      core.PersistentVolumes().Lister(),
		classes:      storage.StorageClasses().Lister(),
		allocation:   devices.New(cfg.Informers),
		patience:     patience,
		clock:        cfg.clock(),
		limits:       newLimits(cfg),
		rooms:        storageroom.Rooms{Drivers: storage.CSIDrivers().Lister(), Capacities: storage.CSIStorageCapacities().Lister()},
		promised:     map[string]types.UID{},
		selected:     map[types.UID]string{},
	}
}

// needs looks up the claims of a pod; an error says why no node can help.
func (c *claims) needs(pod *corev1.Pod) (plugin.Needs, error) {
	var needs plugin.Needs
	volumes, err := c.volumeClaimsOf(pod)
	if err != nil {
		return plugin.Needs{}, err
	}
	for _, claim := range volumes {
		if err := c.addVolume(&needs, claim); err != nil {
			return plugin.Needs{}, err
		}
		if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
			needs.Exclusive = append(needs.Exclusive, claim.Name)
		}
	}
	needs.SortLate()
	if needs.Limits, err = c.volumeLimits(volumes); err != nil {
		return plugin.Needs{}, err
	}
	return needs, c.addDevices(&needs, pod)
}

// addDevices adds the pod's ResourceClaims, and what those without devices could get.
func (c *claims) addDevices(needs *plugin.Needs, pod *corev1.Pod) error {
	var err error
	if needs.Devices, err = c.allocation.ClaimsOf(pod); err != nil {
		return err
	}
	extended, err := c.allocation.Extended(pod)
	if err != nil || len(needs.Devices) == 0 && extended == nil {
		return err
	}
	wish := devices.Wish{Claims: needs.Devices, Extended: extended, Limits: c.limitsOf(pod)}
	for _, claim := range needs.Devices {
		if devices.IsStuck(claim, wish.Limits, c.clock.Now()) {
			needs.Stuck = append(needs.Stuck, claim)
		}
	}
	if extended != nil {
		needs.Extended, needs.ByDevices, needs.Stale = extended.On, extended.ByDevices, extended.Stale
	}
	needs.DevicesVersion = fmt.Sprint(c.limits.version.Load(), " ", c.allocation.Version()) // before reading
	needs.Allocate, err = c.allocation.Search(pod, wish)
	return err
}

// limitsOf are those of the pod's profile.
func (c *claims) limitsOf(pod *corev1.Pod) devices.Limits {
	if limits, ok := c.patience[pod.Spec.SchedulerName]; ok {
		return limits
	}
	return devices.DefaultLimits
}

// volumeClaimsOf finds the claims of all volumes, before any is looked at further. As upstream, it complains first of one
// that the pod names and that does not exist.
func (c *claims) volumeClaimsOf(pod *corev1.Pod) ([]*corev1.PersistentVolumeClaim, error) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if _, err := c.volumeClaims.PersistentVolumeClaims(pod.Namespace).Get(v.PersistentVolumeClaim.ClaimName); err != nil {
			return nil, err
		}
	}
	var found []*corev1.PersistentVolumeClaim
	for i := range pod.Spec.Volumes {
		claim, err := c.volumeClaim(pod, &pod.Spec.Volumes[i])
		if err != nil {
			return nil, err
		}
		if claim != nil {
			found = append(found, claim)
		}
	}
	return found, nil
}

// volumeClaim finds the claim of a volume; nil for volumes without one.
func (c *claims) volumeClaim(pod *corev1.Pod, v *corev1.Volume) (*corev1.PersistentVolumeClaim, error) {
	var name string
	switch {
	case v.PersistentVolumeClaim != nil:
		name = v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		name = ephemeral.VolumeClaimName(pod, v)
	default:
		return nil, nil
	}
	claim, err := c.volumeClaims.PersistentVolumeClaims(pod.Namespace).Get(name)
	switch {
	case apierrors.IsNotFound(err) && v.Ephemeral != nil:
		return nil, fmt.Errorf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
	case err != nil:
		return nil, err
	case claim.Status.Phase == corev1.ClaimLost:
		return nil, fmt.Errorf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name, claim.Spec.VolumeName)
	case claim.DeletionTimestamp != nil:
		return nil, fmt.Errorf("persistentvolumeclaim %q is being deleted", name)
	case v.Ephemeral != nil:
		err = ephemeral.VolumeIsForPod(pod, claim)
	}
	return claim, err
}

// addVolume adds what a claim requires: its volume, or that it has none yet.
func (c *claims) addVolume(needs *plugin.Needs, claim *corev1.PersistentVolumeClaim) error {
	if !volumebinding.IsBound(claim) {
		class := c.lateClass(claim)
		if class == nil || claim.Spec.VolumeName != "" {
			return errUnboundClaims
		}
		return c.addLate(needs, claim, class)
	}
	v, err := c.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		needs.VolumeGone = true
		return nil
	}
	if ref := v.Spec.ClaimRef; ref != nil &&
		(ref.Namespace != claim.Namespace || ref.Name != claim.Name || ref.UID != "" && ref.UID != claim.UID) {
		return errUnboundClaims // the volume belongs to another claim
	}
	needs.Volumes = append(needs.Volumes, v)
	return nil
}

// lateClass is the claim's class, if that binds claims only once their pods have nodes.
func (c *claims) lateClass(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	class, err := c.classes.Get(volume.GetPersistentVolumeClaimClass(claim))
	if err != nil || class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
		return nil
	}
	return class
}

// addLate adds a claim that gets its volume when the pod has a node. What is promised for it already holds for all its
// pods.
func (c *claims) addLate(needs *plugin.Needs, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	late := plugin.LateClaim{Claim: claim, Class: class, Node: claim.Annotations[volume.AnnSelectedNode]}
	if err := c.rooms.Measure(&late); err != nil {
		return err
	}
	if node, ok := c.selected[claim.UID]; ok {
		late.Node = node
	}
	all, err := c.volumes.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, v := range all {
		to, taken := c.promised[v.Name]
		free := v.Spec.ClaimRef == nil || volume.IsVolumeBoundToClaim(v, claim)
		switch {
		case taken && to == claim.UID:
			late.Candidates = []*corev1.PersistentVolume{v}
			needs.Late = append(needs.Late, late)
			return nil
		case !taken && free && volume.GetPersistentVolumeClass(v) == class.Name:
			late.Candidates = append(late.Candidates, v)
		}
	}
	slices.SortFunc(late.Candidates, func(a, b *corev1.PersistentVolume) int { return strings.Compare(a.Name, b.Name) })
	needs.Late = append(needs.Late, late)
	return nil
}

// promise keeps what was chosen for a pod from others. Its caller holds scheduler.mu.
func (c *claims) promise(choice plugin.VolumeChoice, node string) {
	for _, b := range choice.Bind {
		c.promised[b.Volume.Name] = b.Claim.UID
	}
	for _, claim := range choice.Provision {
		c.selected[claim.UID] = node
	}
}

// release ends the promises: what was chosen is in the caches, or given up. Its caller holds scheduler.mu.
func (c *claims) release(choice plugin.VolumeChoice) {
	for _, b := range choice.Bind {
		delete(c.promised, b.Volume.Name)
	}
	for _, claim := range choice.Provision {
		delete(c.selected, claim.UID)
	}
}
