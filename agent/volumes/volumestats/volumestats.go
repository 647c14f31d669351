package volumestats

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

// DefaultEvery is upstream's pause between two measurements.
const DefaultEvery = time.Minute

// Config of a Keeper; all but Every is required.
type Config struct {
	// Pods are those of this node.
	Pods func() []*corev1.Pod
	// Volume is the persistent volume that a claim is bound to; owner is the pod that the claim was made for, or nil.
	Volume func(ctx context.Context, namespace, claim string, owner *corev1.Pod) (*corev1.PersistentVolume, error)
	// Measure says how full a pod's volume is.
	Measure func(ctx context.Context, pod types.UID, pv *corev1.PersistentVolume) (*stats.FsStats, error)
	// Every is between two measurements; 0 is DefaultEvery, and less than nothing measures none.
	Every  time.Duration
	Logger *slog.Logger
}

// Keeper knows how full volumes are. It is safe for concurrent use.
type Keeper struct {
	Config
	mu      sync.Mutex
	volumes map[key]*volume
}

// key is a pod's name for a volume.
type key struct {
	pod  types.UID
	name string
}

// volume is one of a claim. Keeper.mu guards it but pv, which is its measurement's.
type volume struct {
	// busy: a measurement is under way.
	busy bool
	pv   *corev1.PersistentVolume
	last *stats.VolumeStats
}

// New returns a Keeper that knows nothing yet.
func New(cfg Config) *Keeper {
	if cfg.Every == 0 {
		cfg.Every = DefaultEvery
	}
	return &Keeper{Config: cfg, volumes: map[key]*volume{}}
}

// Run measures until ctx ends. It does not wait for measurements that hang.
func (k *Keeper) Run(ctx context.Context) {
	for k.Every > 0 {
		k.round(ctx)
		if !wait.For(ctx, k.Every) {
			return
		}
	}
}

// Of are the volumes of a pod that could be measured, by name.
func (k *Keeper) Of(pod types.UID) (found []stats.VolumeStats) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for at, v := range k.volumes {
		if at.pod == pod && v.last != nil {
			found = append(found, *v.last)
		}
	}
	slices.SortFunc(found, func(a, b stats.VolumeStats) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// All are the volumes of all pods, each claim once.
func (k *Keeper) All() []stats.VolumeStats {
	byClaim := map[stats.PVCReference]stats.VolumeStats{}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, v := range k.volumes {
		if v.last != nil {
			byClaim[*v.last.PVCRef] = *v.last
		}
	}
	all := make([]stats.VolumeStats, 0, len(byClaim))
	for _, s := range byClaim {
		all = append(all, s)
	}
	return all
}

// round begins to measure all volumes, and forgets those of pods that are gone.
func (k *Keeper) round(ctx context.Context) {
	seen := map[key]bool{}
	for _, pod := range k.Pods() {
		for i := range pod.Spec.Volumes {
			v := &pod.Spec.Volumes[i]
			if claim := claimOf(pod, v); claim != "" {
				seen[key{pod.UID, v.Name}] = true
				k.begin(ctx, pod, v, claim)
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for at := range k.volumes {
		if !seen[at] {
			delete(k.volumes, at)
		}
	}
}

// claimOf is the claim of a volume; empty if it has none.
func claimOf(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod.Name + "-" + v.Name
	}
	return ""
}

// begin measures a volume, unless that is under way.
func (k *Keeper) begin(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, claim string) {
	at := key{pod.UID, v.Name}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.volumes[at] == nil {
		k.volumes[at] = &volume{}
	}
	of := k.volumes[at]
	if of.busy {
		return
	}
	of.busy = true
	go func() {
		measured, err := k.measure(ctx, of, pod, v, claim)
		if err != nil {
			k.Logger.Debug("a volume is not measured", "namespace", pod.Namespace, "pod", pod.Name, "volume", v.Name, "err", err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		of.busy, of.last = false, measured
	}()
}

func (k *Keeper) measure(ctx context.Context, of *volume, pod *corev1.Pod, v *corev1.Volume, claim string) (*stats.VolumeStats, error) {
	if of.pv == nil {
		var owner *corev1.Pod
		if v.Ephemeral != nil {
			owner = pod
		}
		pv, err := k.Volume(ctx, pod.Namespace, claim, owner)
		if err != nil {
			return nil, err
		}
		of.pv = pv
	}
	found, err := k.Measure(ctx, pod.UID, of.pv)
	if err != nil {
		return nil, err
	}
	return &stats.VolumeStats{Name: v.Name, PVCRef: &stats.PVCReference{Name: claim, Namespace: pod.Namespace}, FsStats: *found}, nil
}
