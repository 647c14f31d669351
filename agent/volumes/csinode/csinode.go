package csinode

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

const (
	retryMin = time.Second
	retryMax = 30 * time.Second
)

// Driver is one that serves volumes here.
type Driver struct {
	storagev1.CSINodeDriver
	// Labels are what the node gets for it; TopologyKeys are their names.
	Labels map[string]string
}

// Keeper keeps one CSINode. It is safe for concurrent use.
type Keeper struct {
	client  kubernetes.Interface
	node    string
	logger  *slog.Logger
	changed chan struct{} // holds one

	mu      sync.Mutex
	drivers map[string]*Driver // nil: removed
}

// New returns a Keeper, which writes while it Runs.
func New(client kubernetes.Interface, node string, logger *slog.Logger) *Keeper {
	return &Keeper{client: client, node: node, logger: logger, changed: make(chan struct{}, 1), drivers: map[string]*Driver{}}
}

// Set adds a driver, or changes it.
func (k *Keeper) Set(d Driver) {
	k.set(d.Name, &d)
}

// Remove takes a driver away. Its labels stay: volumes are bound to them.
func (k *Keeper) Remove(driver string) {
	k.set(driver, nil)
}

func (k *Keeper) set(name string, d *Driver) {
	k.mu.Lock()
	k.drivers[name] = d
	k.mu.Unlock()
	k.Look()
}

// Look makes the Keeper look at its CSINode: the Node may have been made anew.
func (k *Keeper) Look() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.changed:
		}
		for pause := retryMin; ; pause = min(2*pause, retryMax) {
			err := k.write(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			level := slog.LevelWarn
			if apierrors.IsNotFound(err) {
				level = slog.LevelDebug // the Node is about to register
			}
			k.logger.Log(ctx, level, "cannot write the CSINode yet", "err", err)
			if !wait.For(ctx, pause) {
				return
			}
		}
	}
}

func (k *Keeper) write(ctx context.Context) error {
	k.mu.Lock()
	drivers := maps.Clone(k.drivers)
	k.mu.Unlock()
	if len(drivers) == 0 {
		return nil
	}
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the Node: %w", err)
	}
	if err := k.label(ctx, node, drivers); err != nil {
		return fmt.Errorf("label the Node: %w", err)
	}
	return k.writeDrivers(ctx, node, drivers)
}

// label adds what the drivers say of the node; another driver's labels are not touched.
func (k *Keeper) label(ctx context.Context, node *corev1.Node, drivers map[string]*Driver) error {
	missing := map[string]string{}
	for _, d := range drivers {
		if d == nil {
			continue
		}
		for key, value := range d.Labels {
			if was, ok := node.Labels[key]; !ok || was != value {
				missing[key] = value
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": missing}})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (k *Keeper) writeDrivers(ctx context.Context, node *corev1.Node, drivers map[string]*Driver) error {
	api := k.client.StorageV1().CSINodes()
	found, err := api.Get(ctx, k.node, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	if err == nil && !slices.Contains(found.OwnerReferences, owner) { // of a former Node: garbage collection is about to delete it
		if err := api.Delete(ctx, k.node, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(found.UID))}); err != nil {
			return err
		}
	}
	if apierrors.IsNotFound(err) || !slices.Contains(found.OwnerReferences, owner) {
		_, err = api.Create(ctx, &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: k.node, OwnerReferences: []metav1.OwnerReference{owner}},
			Spec:       storagev1.CSINodeSpec{Drivers: merge(nil, drivers)},
		}, metav1.CreateOptions{})
		return err
	}
	return k.update(ctx, found, drivers)
}

func (k *Keeper) update(ctx context.Context, found *storagev1.CSINode, drivers map[string]*Driver) error {
	api, next := k.client.StorageV1().CSINodes(), found.DeepCopy()
	if next.Spec.Drivers = merge(found.Spec.Drivers, drivers); reflect.DeepEqual(next.Spec.Drivers, found.Spec.Drivers) {
		return nil
	}
	_, err := api.Update(ctx, next, metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) {
		return err
	}
	// A driver registered anew, otherwise than before: an entry does not change, it goes and comes.
	without := found.DeepCopy()
	without.Spec.Drivers = merge(found.Spec.Drivers, absent(drivers))
	written, err := api.Update(ctx, without, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	next.ResourceVersion = written.ResourceVersion
	_, err = api.Update(ctx, next, metav1.UpdateOptions{})
	return err
}

func absent(drivers map[string]*Driver) map[string]*Driver {
	out := map[string]*Driver{}
	for name := range drivers {
		out[name] = nil
	}
	return out
}

// merge replaces what is known here and keeps the rest, in the order of names.
func merge(found []storagev1.CSINodeDriver, known map[string]*Driver) []storagev1.CSINodeDriver {
	out := []storagev1.CSINodeDriver{}
	for _, d := range found {
		if _, ok := known[d.Name]; !ok {
			out = append(out, d)
		}
	}
	for _, d := range known {
		if d != nil {
			out = append(out, d.CSINodeDriver)
		}
	}
	slices.SortFunc(out, func(a, b storagev1.CSINodeDriver) int { return strings.Compare(a.Name, b.Name) })
	return out
}
