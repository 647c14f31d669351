// Package watched tells pods when a ConfigMap or Secret that their volumes have may have changed.
//
// It owns: one watch for each such object on this node, shared by all pods that use it, since a node may read single objects of its
// pods only. It may call: client-go.
//
// Promises: a pod is told within moments of each change, and once after each gap in a watch, since something may have been
// missed; objects beyond a namespace's share of the watches are told of every retryMax; no watch outlives the last pod that uses its
// object, nor the context that the Objects were made with. Objects that do not exist are watched too: they may come.
//
// Tested in a synctest bubble over client-go's fake clientset.
package watched

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/internal/shares"
)

const (
	// retryMin and retryMax bound the pauses before a watch is opened again.
	retryMin = time.Second
	retryMax = 30 * time.Second
	// watchesMax is how many objects are watched at once, shared by namespaces: one pod can name thousands. Pods are told every retryMax
	// that an object may have changed which is not watched.
	watchesMax = 1000
)

// Objects are those that volumes of this node's pods have. It is safe for concurrent use.
type Objects struct {
	ctx     context.Context
	client  kubernetes.Interface
	watches sync.WaitGroup
	places  *shares.Places

	mu    sync.Mutex
	used  map[object]*use
	byPod map[types.UID][]object
}

// object names a ConfigMap or a Secret.
type object struct {
	secret          bool
	namespace, name string
}

// use is one watch and whom to tell.
type use struct {
	tell map[types.UID]func()
	stop context.CancelFunc
}

// New watches until ctx ends; Wait then waits for the last watch.
func New(ctx context.Context, client kubernetes.Interface) *Objects {
	places := shares.New("watches of ConfigMaps and Secrets on this node", shares.Limits{All: watchesMax})
	return &Objects{ctx: ctx, client: client, places: places, used: map[object]*use{}, byPod: map[types.UID][]object{}}
}

// Wait returns when ctx has ended, and the last watch after it.
func (o *Objects) Wait() {
	<-o.ctx.Done()
	o.mu.Lock()
	//lint:ignore SA2001 who follows now sees that it has ended; there is nothing to guard
	o.mu.Unlock()
	o.watches.Wait()
}

// Follow has changed called, from any goroutine, when an object of the pod's volumes may have changed; it must be quick. Volumes of
// a pod never change, so following it again does nothing.
func (o *Objects) Follow(pod *corev1.Pod, changed func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.byPod[pod.UID]; ok || o.ctx.Err() != nil {
		return
	}
	o.byPod[pod.UID] = objectsOf(pod)
	for _, of := range o.byPod[pod.UID] {
		u := o.used[of]
		if u == nil {
			ctx, cancel := context.WithCancel(o.ctx)
			u = &use{tell: map[types.UID]func(){}, stop: cancel}
			o.used[of] = u
			o.watches.Go(func() { o.watch(ctx, of) })
		}
		u.tell[pod.UID] = changed
	}
}

// Forget ends what Follow began.
func (o *Objects) Forget(pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, of := range o.byPod[pod] {
		u := o.used[of]
		if u == nil { // the pod has it twice
			continue
		}
		delete(u.tell, pod)
		if len(u.tell) == 0 {
			u.stop()
			delete(o.used, of)
		}
	}
	delete(o.byPod, pod)
}

// objectsOf are those of a pod's volumes.
func objectsOf(pod *corev1.Pod) (all []object) {
	add := func(secret bool, name string) {
		all = append(all, object{secret, pod.Namespace, name})
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.ConfigMap != nil:
			add(false, v.ConfigMap.Name)
		case v.Secret != nil:
			add(true, v.Secret.SecretName)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					add(false, s.ConfigMap.Name)
				}
				if s.Secret != nil {
					add(true, s.Secret.Name)
				}
			}
		}
	}
	return all
}

// watch tells of each event until ctx ends. The first events are the object as it is.
func (o *Objects) watch(ctx context.Context, of object) {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		switch began, err := o.watchOnce(ctx, of); {
		case err != nil:
			pause = retryMax
			o.told(of)
		case began:
			pause = retryMin
		}
		if !wait.For(ctx, pause) {
			return
		}
	}
}

// watchOnce watches until something ends it. The error says that the namespace has its share of watches.
func (o *Objects) watchOnce(ctx context.Context, of object) (began bool, err error) {
	leave, err := o.places.Enter(shares.Namespace(of.namespace))
	if err != nil {
		return false, err
	}
	defer leave()
	w, err := o.open(ctx, of)
	if err != nil {
		return false, nil // the server does not answer: tried again
	}
	o.relay(ctx, w, of)
	return true, nil
}

func (o *Objects) open(ctx context.Context, of object) (watch.Interface, error) {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, of.name).String()}
	if of.secret {
		return o.client.CoreV1().Secrets(of.namespace).Watch(ctx, options)
	}
	return o.client.CoreV1().ConfigMaps(of.namespace).Watch(ctx, options)
}

func (o *Objects) relay(ctx context.Context, w watch.Interface, of object) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-w.ResultChan():
			if !ok || event.Type == watch.Error {
				return
			}
			if event.Type != watch.Bookmark {
				o.told(of)
			}
		}
	}
}

func (o *Objects) told(of object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if u := o.used[of]; u != nil {
		for _, changed := range u.tell {
			changed()
		}
	}
}
