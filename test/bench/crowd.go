package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/base/machine/machinetest/leftovers"
)

const (
	crowdWord = "word"
	// creatorsMax is how many pods are created at once.
	creatorsMax = 16
	// fileLookInterval is how often each pod's file is read; what is measured is no finer.
	fileLookInterval = 5 * time.Millisecond
	// settleTime is how long what a pod had may be there when it is gone: the kernel ends namespaces by and by.
	settleTime = 3 * time.Second
)

// runCrowd starts many real pods at once on a node, leaves them alone, changes a ConfigMap that all of them have as a volume, and
// deletes them all; what is left of them on this machine is counted. With -pids of an agent its use is that of the time in which
// nothing happens but probes.
func runCrowd(ctx context.Context, args []string) {
	o := newOptions("crowd")
	crowd := &crowd{}
	o.StringVar(&crowd.image, "image", "setpoint.local/demo:v1", "image of the pods; it should be on the node")
	probe := o.String("probe", "/setpoint version", "command of each pod's liveness probe")
	o.IntVar(&crowd.pods, "pods", 100, "pods")
	o.DurationVar(&crowd.limit, "limit", 2*time.Minute, "give up on a step after")
	idle := o.Duration("idle", time.Minute, "how long to leave the pods alone")
	o.StringVar(&crowd.directory, "pods-dir", "", "the agent's directory of pods on this machine; empty: volumes are not looked at")
	crowd.cluster = o.open(args)
	crowd.probe = strings.Fields(*probe)
	ns := crowd.cluster.namespace(ctx, "bench-crowd")
	defer crowd.cluster.deleteNamespace(ns)
	crowd.namespace, crowd.event = ns, make(chan struct{}, 1)
	crowd.ready, crowd.present = map[string]bool{}, map[string]bool{}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go watchPods(watching, crowd.cluster, ns, crowd.see)

	m, before := metrics{"pods": float64(crowd.pods)}, leftovers.Scope{}.Look()
	steps := []func(context.Context, metrics) error{crowd.start, crowd.idleFor(*idle), crowd.update, crowd.end}
	for _, step := range steps {
		if err := step(ctx, m); err != nil {
			fatalf("crowd: %v", err)
		}
	}
	sleep(ctx, settleTime)
	countLeft(before, m)
	emit("crowd", fmt.Sprint(crowd.pods), crowd.cluster.target, map[string]any{"image": crowd.image}, []metrics{m})
}

// crowd is the pods of one namespace.
type crowd struct {
	cluster                     *cluster
	namespace, image, directory string
	probe                       []string
	pods                        int
	limit                       time.Duration

	mu             sync.Mutex
	ready, present map[string]bool
	event          chan struct{}
}

func (c *crowd) see(ev podEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := ev.pod.Name
	if ev.kind == "DELETED" {
		delete(c.present, name)
		delete(c.ready, name)
	} else {
		c.present[name], c.ready[name] = true, ready(ev.pod)
	}
	select {
	case c.event <- struct{}{}:
	default:
	}
}

// start measures from the first create to the last pod that is Ready.
func (c *crowd) start(ctx context.Context, m metrics) error {
	if err := c.write(ctx, "before"); err != nil {
		return err
	}
	began := time.Now()
	if err := c.createAll(ctx); err != nil {
		return err
	}
	if err := c.await(ctx, "Ready", func() bool {
		return len(c.ready) == c.pods && !slices.Contains(slices.Collect(maps.Values(c.ready)), false)
	}); err != nil {
		return err
	}
	m["all_ready_ms"] = ms(time.Since(began))
	return nil
}

func (c *crowd) createAll(ctx context.Context) error {
	names, failed := make(chan string), make(chan error, creatorsMax)
	var creators sync.WaitGroup
	for worker := range creatorsMax {
		creators.Go(func() {
			for name := range names {
				_, err := c.cluster.client(worker).CoreV1().Pods(c.namespace).Create(ctx, c.pod(name), metav1.CreateOptions{})
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
	for i := 0; i < c.pods && err == nil; i++ {
		select {
		case names <- fmt.Sprintf("p-%d", i):
		case err = <-failed:
		}
	}
	close(names)
	creators.Wait()
	close(failed)
	return errors.Join(err, <-failed)
}

// pod has an exec probe every ten seconds, and the ConfigMap as a volume.
func (c *crowd) pod(name string) *corev1.Pod {
	volume := corev1.Volume{Name: crowdWord}
	volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: crowdWord}}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{volume},
		Containers: []corev1.Container{{
			Name: "c", Image: c.image, ImagePullPolicy: corev1.PullIfNotPresent,
			VolumeMounts: []corev1.VolumeMount{{Name: crowdWord, MountPath: "/config"}},
			LivenessProbe: &corev1.Probe{PeriodSeconds: 10, TimeoutSeconds: 5, ProbeHandler: corev1.ProbeHandler{
				Exec: &corev1.ExecAction{Command: c.probe},
			}},
		}},
	}}
}

// idleFor adds the use of a time in which nothing happens but probes.
func (c *crowd) idleFor(length time.Duration) func(context.Context, metrics) error {
	return func(ctx context.Context, m metrics) error {
		before := measure(c.cluster.pids)
		sleep(ctx, length)
		before.since(m, c.cluster.pids)
		return ctx.Err()
	}
}

// update measures how long after the write of a ConfigMap each pod's file has the new content.
func (c *crowd) update(ctx context.Context, m metrics) error {
	if c.directory == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(c.directory, "*", "volumes", "kubernetes.io~configmap", crowdWord, crowdWord))
	if err != nil || len(files) != c.pods {
		return fmt.Errorf("%d files of %d pods below %s: %w", len(files), c.pods, c.directory, err)
	}
	if err := c.write(ctx, "after"); err != nil {
		return err
	}
	written, seen := time.Now(), &latencies{}
	for len(files) > 0 {
		if time.Since(written) > c.limit || ctx.Err() != nil {
			return fmt.Errorf("%d volumes are old after %s", len(files), time.Since(written))
		}
		files = slices.DeleteFunc(files, func(file string) bool {
			content, err := os.ReadFile(file)
			isNew := err == nil && string(content) == "after"
			if isNew {
				seen.add(time.Since(written))
			}
			return isNew
		})
		sleep(ctx, fileLookInterval)
	}
	seen.into(m, "volume_")
	return nil
}

// write gives the ConfigMap its content.
func (c *crowd) write(ctx context.Context, word string) error {
	client := c.cluster.client(0).CoreV1().ConfigMaps(c.namespace)
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: crowdWord}, Data: map[string]string{crowdWord: word}}
	_, err := client.Update(ctx, wanted, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, wanted, metav1.CreateOptions{})
	}
	return err
}

// end measures from the deletion to the last pod that is gone, with the grace period that pods have by default.
func (c *crowd) end(ctx context.Context, m metrics) error {
	began := time.Now()
	err := c.cluster.client(0).CoreV1().Pods(c.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := c.await(ctx, "gone", func() bool { return len(c.present) == 0 }); err != nil {
		return err
	}
	m["all_gone_ms"] = ms(time.Since(began))
	return nil
}

// await waits until ok, called with c locked, says so.
func (c *crowd) await(ctx context.Context, what string, ok func() bool) error {
	deadline := time.After(c.limit)
	for {
		c.mu.Lock()
		done := ok()
		c.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-c.event:
		case <-deadline:
			return fmt.Errorf("the pods are not all %s after %s", what, c.limit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
