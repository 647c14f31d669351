package staticpods

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/internal/reread"
)

// DefaultEvery is the pause between two rounds: reading a folder costs little.
const DefaultEvery = time.Second

// Pods runs pods; a pods.Manager.
type Pods interface {
	// StartStatic runs a pod that the API does not know, EndStatic ends it. Runs: something of it is left.
	StartStatic(ctx context.Context, pod *corev1.Pod)
	EndStatic(ctx context.Context, pod *corev1.Pod)
	Runs(uid types.UID) bool
	// Mirrors are this node's mirror pods; known is false before the API has told of all.
	Mirrors() (list []*corev1.Pod, known bool)
}

// Config of a Keeper. All fields but Every and Logger are required.
type Config struct {
	// Path is a folder, or one file; empty: there are no static pods, and mirrors of those that were go.
	Path     string
	NodeName string
	Client   kubernetes.Interface
	Pods     Pods
	// Complete sets the defaults of a pod and says what is wrong with it.
	Complete func(*corev1.Pod) error
	// NodeUID is "" until the Node is there; mirror pods belong to it.
	NodeUID func() types.UID
	// Every is the pause between two rounds.
	Every  time.Duration
	Logger *slog.Logger
}

// Keeper runs the pods of one folder. Use New, then Round once before the first pods of the API are run, then Run.
type Keeper struct {
	Config
	running map[types.UID]*corev1.Pod
	ending  map[types.UID]bool
	// What was logged: of a file by its path, of a mirror pod by its name.
	ofFiles, ofMirrors reread.Told
}

// New returns a Keeper that has not looked yet.
func New(cfg Config) *Keeper {
	if cfg.Every == 0 {
		cfg.Every = DefaultEvery
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Keeper{Config: cfg, running: map[types.UID]*corev1.Pod{}, ending: map[types.UID]bool{}}
}

// Run makes rounds until ctx ends; pods go on running.
func (k *Keeper) Run(ctx context.Context) {
	for wait.For(ctx, k.Every) {
		k.Round(ctx)
	}
}

// Round looks at the folder and at the API once.
func (k *Keeper) Round(ctx context.Context) {
	for uid := range k.running {
		if !k.Pods.Runs(uid) {
			delete(k.running, uid)
			delete(k.ending, uid)
		}
	}
	wanted, ok := k.wanted()
	if !ok {
		return // what cannot be read has not changed
	}
	mirrors, known := k.Pods.Mirrors()
	s := plan(world{wanted: wanted, running: k.running, ending: k.ending, mirrors: mirrors, known: known})
	for _, pod := range s.end {
		k.Logger.Info("ending a static pod", "pod", nameOf(pod).String())
		k.ending[pod.UID] = true
		k.Pods.EndStatic(ctx, pod)
	}
	for _, pod := range s.start {
		k.Logger.Info("starting a static pod", "pod", nameOf(pod).String(), "uid", string(pod.UID))
		k.running[pod.UID] = pod
		k.Pods.StartStatic(ctx, pod)
	}
	k.mirror(ctx, s)
}

func (k *Keeper) mirror(ctx context.Context, s steps) {
	tried := sets.New[string]()
	note := func(pod *corev1.Pod, err error) {
		name := nameOf(pod).String()
		tried.Insert(name)
		k.note(&k.ofMirrors, name, err)
	}
	for _, mirror := range s.remove {
		note(mirror, k.removeMirror(ctx, mirror))
	}
	for _, pod := range s.create {
		note(pod, k.createMirror(ctx, pod))
	}
	k.ofMirrors.Keep(tried.Has)
}

func (k *Keeper) wanted() (list []*corev1.Pod, ok bool) {
	manifests, err := folder{k.Path, k.NodeName, k.Complete}.read()
	k.note(&k.ofFiles, k.Path, err)
	there := sets.New(k.Path)
	for _, m := range manifests {
		there.Insert(m.path)
		k.note(&k.ofFiles, m.path, m.err)
		if m.err == nil {
			list = append(list, m.pod)
		}
	}
	k.ofFiles.Keep(there.Has)
	return list, err == nil || len(manifests) > 0
}

// note logs an error once, until it is another one.
func (k *Keeper) note(told *reread.Told, what string, err error) {
	if told.IsNew(what, err) {
		k.Logger.Error("static pods", "of", what, "err", err)
	}
}

// createMirror shows pod to the cluster. A pod of that name which is no mirror stays, and the static pod is not shown.
func (k *Keeper) createMirror(ctx context.Context, pod *corev1.Pod) error {
	uid := k.NodeUID()
	if uid == "" {
		return nil
	}
	controller := true
	mirror := pod.DeepCopy()
	mirror.UID, mirror.ResourceVersion, mirror.Status = "", "", corev1.PodStatus{}
	mirror.Annotations[corev1.MirrorPodAnnotationKey] = string(pod.UID)
	mirror.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: k.NodeName, UID: uid, Controller: &controller},
	}
	_, err := k.Client.CoreV1().Pods(pod.Namespace).Create(ctx, mirror, metav1.CreateOptions{})
	return err
}

func (k *Keeper) removeMirror(ctx context.Context, mirror *corev1.Pod) error {
	var now int64
	err := k.Client.CoreV1().Pods(mirror.Namespace).Delete(ctx, mirror.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &mirror.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
