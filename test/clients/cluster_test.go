package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// awaitTimeout bounds what is waited for: an election of servers and one of operators
// fit in it several times.
const awaitTimeout = 90 * time.Second

// cluster is three servers, each a process, behind one address.
type cluster struct {
	servers    map[string]*process
	kubeconfig string
	config     *rest.Config
	client     *kubernetes.Clientset
	dynamic    *dynamic.DynamicClient
}

// startServers starts them, each with more flags if there are any.
func startServers(t *testing.T, flags ...string) *cluster {
	t.Helper()
	addresses := map[string]string{}
	var list []string
	for _, name := range []string{"server-1", "server-2", "server-3"} {
		addresses[name] = freeAddress(t)
		list = append(list, name+"="+addresses[name])
	}
	trust := filepath.Join(t.TempDir(), "trust")
	out, err := exec.Command(program("setpoint"), "cluster", "init", "--servers", strings.Join(list, ","), "--out", trust).CombinedOutput()
	if err != nil {
		t.Fatalf("cluster init: %v\n%s", err, out)
	}
	c := &cluster{servers: map[string]*process{}}
	var all sync.WaitGroup
	for name := range addresses {
		p := &process{}
		c.servers[name] = p
		all.Go(func() {
			*p = *mustStart(t, "is ready", nil, "setpoint", append([]string{"server", "--name", name, "--data-dir", "data",
				"--initial-servers", strings.Join(list, ","), "--trust-dir", trust, "--gossip-address=", "--log-level", "warn"}, flags...)...)
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	c.connect(t, filepath.Join(trust, "admin.kubeconfig"), balance(t, addresses))
	return c
}

// connect makes clients of the administrator, for the address of the balancer.
func (c *cluster) connect(t *testing.T, kubeconfig, address string) {
	t.Helper()
	admin, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range admin.Clusters {
		server.Server = "https://" + address
	}
	c.useKubeconfig(t, admin)
}

func (c *cluster) useKubeconfig(t *testing.T, kubeconfig *clientcmdapi.Config) {
	t.Helper()
	c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(*kubeconfig, c.kubeconfig)
	if err == nil {
		c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	}
	if err == nil {
		c.config.QPS = -1 // what is tried is the server, not the client's patience
		c.client, err = kubernetes.NewForConfig(c.config)
	}
	if err == nil {
		c.dynamic, err = dynamic.NewForConfig(c.config)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// kubectl runs the newest kubectl with an input.
func (c *cluster) kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program("kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+t.TempDir())
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// killLeader kills the server that leads.
func (c *cluster) killLeader(t *testing.T) {
	t.Helper()
	cmd := exec.Command(program("setpoint"), "cluster", "members", "-o", "json")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cluster members: %v\n%s", err, out)
	}
	var members []struct{ Name, Role string }
	if err := json.Unmarshal(out, &members); err != nil {
		t.Fatalf("cluster members: %v\n%s", err, out)
	}
	for _, m := range members {
		if m.Role == "leader" {
			t.Logf("%s leads and is killed", m.Name)
			c.servers[m.Name].kill()
			return
		}
	}
	t.Fatalf("nobody leads:\n%s", out)
}

// await watches one object until it is as wanted; nil is an object that is not there.
func (c *cluster) await(t *testing.T, resource schema.GroupVersionResource, namespace, name, want string, is func(*unstructured.Unstructured) bool) {
	t.Helper()
	c.awaitAny(t, resource, namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, name), want, func(all []*unstructured.Unstructured) bool {
		if len(all) == 0 {
			return is(nil)
		}
		return is(all[0])
	})
}

// awaitAny watches the objects of a selector until they are as wanted.
func (c *cluster) awaitAny(
	t *testing.T, resource schema.GroupVersionResource, namespace string, of fields.Selector, want string, are func([]*unstructured.Unstructured) bool,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	changed := make(chan struct{}, 1)
	touch := func() {
		select {
		case changed <- struct{}{}:
		default: // a look is due anyway
		}
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(c.dynamic, resource, namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = of.String()
	}).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { touch() }, UpdateFunc: func(any, any) { touch() }, DeleteFunc: func(any) { touch() },
	})
	if err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	for {
		var last []*unstructured.Unstructured
		for _, o := range informer.GetStore().List() {
			last = append(last, o.(*unstructured.Unstructured))
		}
		if ctx.Err() == nil && are(last) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			text, _ := json.MarshalIndent(last, "", "  ")
			t.Fatalf("%s %s/%s: not %s in time:\n%s", resource.Resource, namespace, of, want, text)
		}
	}
}

func gone(o *unstructured.Unstructured) bool { return o == nil }

// hasCondition says whether a condition is True and, where it says so, about the
// present generation.
func hasCondition(conditionType string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, item := range conditions {
			condition := item.(map[string]any)
			observed, stated := condition["observedGeneration"].(int64)
			if condition["type"] == conditionType {
				return condition["status"] == "True" && (!stated || observed == o.GetGeneration())
			}
		}
		return false
	}
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func portOf(t *testing.T, address string) int32 {
	t.Helper()
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return int32(resolved.Port)
}

func mustf(t *testing.T, err error, format string, args ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}
