package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// contents are the encodings in which a LIST is measured, by the name of the case.
var contents = map[string]string{"json": contentJSON, "protobuf": contentProtobuf}

func runList(ctx context.Context, args []string) {
	o := newOptions("list")
	pods := o.Int("pods", 10000, "pods to list")
	size := o.Int("size", 1536, "wanted JSON bytes of a pod; the server's own fields may make it more")
	runs := o.Int("runs", 5, "LISTs in each encoding")
	cached := o.Bool("cached", false, "ask for resourceVersion=0 and not for the newest state")
	c := o.open(args)
	ns := c.namespace(ctx, "bench-list")
	defer removePods(c, ns)
	logf("filled %d pods in %v", *pods, fillPods(ctx, c, ns, *pods, *size))
	l := lister{cluster: c, namespace: ns, pods: *pods}
	l.http, l.base = c.rawHTTP(0)
	if *cached {
		l.query = "?resourceVersion=0"
	}
	byCase := map[string][]metrics{}
	for range *runs {
		for name, accept := range contents {
			byCase[name] = append(byCase[name], l.run(ctx, accept))
		}
	}
	for name := range contents {
		emit("list", name, c.target, map[string]any{"pods": *pods, "cached": *cached, "gzip": false}, byCase[name])
	}
}

// lister lists a namespace that changes between any two lists, so that no answer can
// be kept whole.
type lister struct {
	cluster          *cluster
	http             *http.Client
	base             string
	namespace, query string
	pods, changes    int
}

func (l *lister) run(ctx context.Context, accept string) metrics {
	l.change(ctx)
	before := measure(l.cluster.pids)
	n, d, err := fetch(ctx, l.http, l.base+"/api/v1/namespaces/"+l.namespace+"/pods"+l.query, accept)
	if err != nil {
		fatalf("list: %v", err)
	}
	m := rate(n, d)
	m["bytes_per_pod"] = float64(n) / float64(l.pods)
	m["server_cpu_s"] = before.spent(l.cluster.pids)
	return m
}

// rate is what reading n bytes comes to.
func rate(n int64, d time.Duration) metrics {
	mib := float64(n) / (1 << 20)
	return metrics{"ms": ms(d), "mib": mib, "mib_per_s": mib / d.Seconds()}
}

// change writes to one pod, another each time.
func (l *lister) change(ctx context.Context) {
	l.changes++
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"bench/change":"%d"}}}`, l.changes)
	pods := l.cluster.client(l.changes).CoreV1().Pods(l.namespace)
	if _, err := pods.Patch(ctx, podName(l.changes%l.pods), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		fatalf("list: changing a pod: %v", err)
	}
}

func podName(i int) string { return fmt.Sprintf("p-%06d", i) }

// noScheduler is a scheduler name that nobody answers to.
const noScheduler = "bench-none"

func pod(ns, name, scheduler string, pad int) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"app": "bench"}},
		Spec: corev1.PodSpec{
			SchedulerName:                scheduler,
			AutomountServiceAccountToken: new(bool),
			Containers: []corev1.Container{{
				Name:  "c",
				Image: "example.invalid/none:1",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("100m"),
					corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
			}},
		},
	}
	if pad > 0 {
		p.Annotations = map[string]string{"bench/pad": strings.Repeat("x", pad)}
	}
	return p
}

// padFor finds the padding that makes a stored pod about want bytes of JSON.
func padFor(ctx context.Context, c *cluster, ns string, want int) int {
	cs := c.client(0)
	probe := pod(ns, "probe", noScheduler, 1)
	if _, err := cs.CoreV1().Pods(ns).Create(ctx, probe, metav1.CreateOptions{}); err != nil {
		fatalf("probe pod: %v", err)
	}
	hc, base := c.rawHTTP(0)
	n, _, err := fetch(ctx, hc, base+"/api/v1/namespaces/"+ns+"/pods/probe", contentJSON)
	if err != nil {
		fatalf("probe pod: %v", err)
	}
	_ = cs.CoreV1().Pods(ns).Delete(ctx, "probe", metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	return max(1, want-int(n)+1)
}

// fillPods creates n pods that nothing schedules and says how long that took.
func fillPods(ctx context.Context, c *cluster, ns string, n, size int) time.Duration {
	pad := padFor(ctx, c, ns, size)
	cs := c.clients(32)
	start := time.Now()
	eachOf(n, 32, func(w, i int) {
		createPod(ctx, cs[w], pod(ns, podName(i), noScheduler, pad))
	})
	return time.Since(start)
}

func createPod(ctx context.Context, cs *kubernetes.Clientset, p *corev1.Pod) {
	var err error
	for range 5 {
		if _, err = cs.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err == nil {
			return
		}
		sleep(ctx, 200*time.Millisecond)
	}
	fatalf("creating pod: %v", err)
}

// fetch reads a URL to its end without decoding it.
func fetch(ctx context.Context, hc *http.Client, url, accept string) (n int64, d time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Accept", accept)
	start := time.Now()
	resp, err := hc.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	n, err = io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return n, time.Since(start), err
}
