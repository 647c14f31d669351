package claims

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	draapi "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/setpoint-io/setpoint/agent/resources/claims/claimstest"
)

const driverName = "dev.example.com"

// node is a manager over a file of the test.
type node struct {
	*Manager
	t      *testing.T
	client *fake.Clientset
	file   string
	// touched are the pods that were to be looked at.
	touched chan types.UID
}

// newNode has these claims in its API, each allocated from the driver and reserved for the pods p and q.
func newNode(t *testing.T, names ...string) *node {
	t.Helper()
	n := &node{t: t, client: fake.NewClientset(), file: filepath.Join(t.TempDir(), "state")}
	for _, name := range names {
		n.add(name, "uid-of-"+name, "p", "q")
	}
	n.start()
	return n
}

// add makes a claim.
func (n *node) add(name, uid string, reserved ...string) {
	n.t.Helper()
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid)}}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: driverName, Pool: "pool", Device: name}}}}
	for _, pod := range reserved {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: types.UID(pod)})
	}
	if err := n.client.Tracker().Add(c); err != nil {
		n.t.Fatal(err)
	}
}

// start begins with what is in the file.
func (n *node) start() {
	n.t.Helper()
	n.touched = make(chan types.UID, 100)
	touched := n.touched
	m, err := New(n.t.Context(), Config{NodeName: "n1", Client: n.client, File: n.file, Affected: func(pod types.UID) { touched <- pod }, Logger: slog.New(slog.NewTextHandler(n.t.Output(), nil))})
	if err != nil {
		n.t.Fatal(err)
	}
	n.Manager = m
}

// use registers a driver.
func (n *node) use(d *claimstest.Driver) (socket string) {
	n.t.Helper()
	d.Name = driverName
	socket, _ = d.Serve(n.t)
	if err := n.Validate(driverName, socket, d.Services()); err != nil {
		n.t.Fatal(err)
	}
	if err := n.Register(n.t.Context(), driverName, socket, d.Services()); err != nil {
		n.t.Fatal(err)
	}
	return socket
}

// using is a pod whose container has the claims, "name" or "name/request".
func using(uid string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	for _, text := range claims {
		name, request, _ := strings.Cut(text, "/")
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "my-" + name, ResourceClaimName: &name})
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: "my-" + name, Request: request})
	}
	return pod
}

func (n *node) calls(d *claimstest.Driver, want ...string) {
	n.t.Helper()
	if diff := cmp.Diff(want, d.Calls()); diff != "" {
		n.t.Error(diff)
	}
}

// TestAClaimOfTwoPods is prepared once and unprepared after the second pod, also by another agent.
func TestAClaimOfTwoPods(t *testing.T) {
	n := newNode(t, "a", "b")
	d := &claimstest.Driver{}
	n.use(d)
	p, q := using("p", "a", "b"), using("q", "a")
	for _, pod := range []*corev1.Pod{p, q, p} {
		if err := n.Prepare(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	n.calls(d, "Prepare a", "Prepare b")
	given, err := n.Given(p, &p.Spec.Containers[0])
	if want := []string{"example.com/dev=a", "example.com/dev=b"}; err != nil || !slices.Equal(given.CDI, want) {
		t.Errorf("%v %v", given.CDI, err)
	}
	resources := n.Resources(q, &q.Spec.Containers[0])
	if len(resources) != 1 || resources[0].ClaimName != "a" || resources[0].ClaimResources[0].DeviceName != "a" ||
		resources[0].ClaimResources[0].CdiDevices[0].Name != "example.com/dev=a" {
		t.Errorf("%v", resources)
	}

	n.start()
	n.use(d)
	if given, err := n.Given(p, &p.Spec.Containers[0]); err != nil || len(given.CDI) != 2 { // its containers may restart
		t.Errorf("%v %v", given.CDI, err)
	}
	if err := n.Unprepare(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	n.calls(d, "Unprepare b")
	if err := n.Prepare(t.Context(), q); err != nil { // a new sandbox in a new agent's life: perhaps the machine has started anew
		t.Fatal(err)
	}
	n.calls(d, "Prepare a")
	if n.Has("p") || !n.Has("q") || !slices.Equal(n.Pods(), []types.UID{"q"}) {
		t.Errorf("%v", n.Pods())
	}
	d.Fail("busy")
	if err := n.Unprepare(t.Context(), "q"); err == nil || err.Error() != "NodeUnprepareResources failed for ResourceClaim a: busy" {
		t.Error(err)
	}
	d.Fail("")
	if err := n.Unprepare(t.Context(), "q"); err != nil || n.Has("q") {
		t.Error(err)
	}
	n.calls(d, "Unprepare a", "Unprepare a")
}

func TestADriverOfTheBeta(t *testing.T) {
	n := newNode(t, "a")
	d := &claimstest.Driver{Beta: true}
	n.use(d)
	p := using("p", "a")
	if err := n.Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if given, err := n.Given(p, &p.Spec.Containers[0]); err != nil || !slices.Equal(given.CDI, []string{"example.com/dev=a"}) {
		t.Errorf("%v %v", given.CDI, err)
	}
	if err := n.Unprepare(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	n.calls(d, "Prepare a", "Unprepare a")
}

func TestClaimsThatMayNotBeUsed(t *testing.T) {
	n := newNode(t, "a")
	n.add("other", "uid-of-other", "somebody")
	n.add("raw", "uid-of-raw", "p")
	raw, _ := n.client.ResourceV1().ResourceClaims("ns").Get(t.Context(), "raw", metav1.GetOptions{})
	raw.Status.Allocation = nil
	if err := n.client.Tracker().Update(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), raw, "ns"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"reserved for another": {using("p", "other"), "pod p (p) is not allowed to use resource claim other (uid-of-other)"},
		"not allocated":        {using("p", "raw"), "resource claim raw is not allocated"},
		"not there":            {using("p", "none"), "failed to fetch ResourceClaim none referenced by pod p"},
		"no driver":            {using("p", "a"), "DRA driver dev.example.com is not registered"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := n.Prepare(t.Context(), test.pod); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, not %s", err, test.want)
			}
		})
	}
	stranger := using("x", "a")
	if _, err := n.Given(stranger, &stranger.Spec.Containers[0]); err == nil {
		t.Error("what was prepared for another pod")
	}
}

// TestAnotherClaimOfTheSameName is not taken for the one that is prepared.
func TestAnotherClaimOfTheSameName(t *testing.T) {
	n := newNode(t, "a")
	n.use(&claimstest.Driver{})
	if err := n.Prepare(t.Context(), using("p", "a")); err != nil {
		t.Fatal(err)
	}
	if err := n.client.Tracker().Delete(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), "ns", "a"); err != nil {
		t.Fatal(err)
	}
	n.add("a", "another", "q")
	if err := n.Prepare(t.Context(), using("q", "a")); err == nil || !strings.Contains(err.Error(), "old resource claim with same name a") {
		t.Error(err)
	}
	if err := n.Unprepare(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	if err := n.Prepare(t.Context(), using("q", "a")); err != nil {
		t.Error(err)
	}
}

func TestARequestOfAClaim(t *testing.T) {
	n := newNode(t, "a")
	d := &claimstest.Driver{Device: func(*draapi.Claim) *draapi.Device {
		return &draapi.Device{RequestNames: []string{"one"}, PoolName: "pool", DeviceName: "x", CdiDeviceIds: []string{"example.com/dev=x"}}
	}}
	n.use(d)
	for request, want := range map[string]int{"a/one": 1, "a/two": 0, "a": 1} {
		p := using("p", request)
		if err := n.Prepare(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if given, err := n.Given(p, &p.Spec.Containers[0]); err != nil || len(given.CDI) != want {
			t.Errorf("%s: %v %v", request, given.CDI, err)
		}
	}
	extended := using("p")
	extended.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "a",
		RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "c", ResourceName: "example.com/x", RequestName: "one"}}}
	if given, err := n.Given(extended, &extended.Spec.Containers[0]); err != nil || len(given.CDI) != 1 {
		t.Errorf("%v %v", given.CDI, err)
	}
}

func TestADriverThatTalksNonsense(t *testing.T) {
	for name, device := range map[string]*draapi.Device{
		"long":  {DeviceName: strings.Repeat("x", nameBytesMax+1)},
		"names": {CdiDeviceIds: make([]string, namesMax+1)},
	} {
		n := newNode(t, "a")
		n.use(&claimstest.Driver{Device: func(*draapi.Claim) *draapi.Device { return device }})
		if err := n.Prepare(t.Context(), using("p", "a")); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	n := newNode(t)
	for name, bad := range map[string][2]string{"version": {driverName, "v1alpha4"}, "name": {"Bad_Name", draapi.DRAPluginService}} {
		if err := n.Validate(bad[0], "", []string{bad[1]}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestOneAtATime: two pods that begin at once have their claim prepared once, and who waits hears that its pod is deleted.
func TestOneAtATime(t *testing.T) {
	n := newNode(t, "a", "b")
	d := &claimstest.Driver{}
	n.use(d)
	release := d.Block()
	var group sync.WaitGroup
	errs := make([]error, 2)
	for i, uid := range []string{"p", "q"} {
		group.Go(func() { errs[i] = n.Prepare(t.Context(), using(uid, "a")) })
	}
	release()
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	n.calls(d, "Prepare a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Prepare(ctx, using("p", "b")); err == nil {
		t.Error("it does not hear that the pod is deleted")
	}
}

func TestAFileThatIsDamaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(file, []byte(`{"Claims":[],"Checksum":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Config{File: file}); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// TestSlicesOfADriverThatIsGone are deleted after 30 seconds, unless it is back by then; at the start those of all are.
func TestSlicesOfADriverThatIsGone(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var mu sync.Mutex
		var wiped []string
		refuse := true
		client.PrependReactor("delete-collection", "resourceslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			if refuse {
				refuse = false
				return true, nil, errors.New("not now")
			}
			wiped = append(wiped, a.(clienttesting.DeleteCollectionAction).GetListRestrictions().Fields.String())
			return true, nil, nil
		})
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, wiped); diff != "" {
				t.Error(diff)
			}
			wiped = nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		m, err := New(ctx, Config{NodeName: "n1", Client: client, File: filepath.Join(dir, "state"), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); m.Run(ctx) }()
		expect()
		time.Sleep(wipeRetryMin)
		expect("spec.nodeName=n1")
		register := func(endpoint string) {
			if err := m.Register(ctx, driverName, endpoint, []string{draapi.DRAPluginService}); err != nil {
				t.Fatal(err)
			}
		}
		register("/one")
		register("/two") // the next version of the driver
		m.Deregister(driverName, "/one")
		time.Sleep(wipeDelay)
		expect()
		m.Deregister(driverName, "/two")
		time.Sleep(wipeDelay - time.Second)
		register("/three")
		time.Sleep(wipeDelay)
		expect()
		m.Deregister(driverName, "/three")
		m.Deregister(driverName, "/none")
		time.Sleep(wipeDelay)
		expect("spec.driver=dev.example.com,spec.nodeName=n1")
		cancel()
		<-done
	})
}
