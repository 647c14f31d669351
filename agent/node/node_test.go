package node

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func inBubble(t *testing.T, cfg Config, objects []runtime.Object, body func(t *testing.T, client *fake.Clientset, changed chan<- struct{})) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		client, given := cfg.Client.(*fake.Clientset)
		if !given {
			client = fake.NewClientset(objects...)
		}
		cfg.Name, cfg.Client, cfg.DataDir, cfg.Port = "n1", client, dir, 10250
		if cfg.Addresses == nil {
			cfg.Addresses = func() []corev1.NodeAddress {
				return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
			}
		}
		changed := make(chan struct{}, 1)
		cfg.Changed = changed
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Run(ctx, cfg) }()
		synctest.Wait()
		body(t, client, changed)
		cancel()
		<-done
	})
}

func getNode(t *testing.T, client *fake.Clientset) *corev1.Node {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func readyOf(n *corev1.Node) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

func TestRegistration(t *testing.T) {
	inBubble(t, Config{Labels: map[string]string{"a": "b"}}, nil, func(t *testing.T, client *fake.Clientset, _ chan<- struct{}) {
		n := getNode(t, client)
		if n.Labels["a"] != "b" || n.Labels[corev1.LabelHostname] != "n1" || n.Labels["beta.kubernetes.io/os"] != "linux" {
			t.Errorf("labels = %v", n.Labels)
		}
		if n.Status.Capacity.Pods().Value() != DefaultMaxPods || n.Status.Capacity.Memory().IsZero() || n.Status.NodeInfo.KubeletVersion != DefaultVersion {
			t.Errorf("status = %+v", n.Status)
		}
		declared := []string{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits", "SetpointPodDial"}
		if !slices.Equal(n.Status.DeclaredFeatures, declared) {
			t.Errorf("declared features = %v", n.Status.DeclaredFeatures)
		}
		if c := readyOf(n); c.Status != corev1.ConditionTrue || c.Reason != "KubeletReady" || len(n.Status.Conditions) != 4 {
			t.Errorf("conditions = %+v", n.Status.Conditions)
		}
	})
}

func TestAdoptionKeepsWhatOthersWrote(t *testing.T) {
	old := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"theirs": "1"}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.42.1.0/24", Unschedulable: true},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "GossipDegraded", Status: corev1.ConditionFalse}}},
	}
	inBubble(t, Config{Labels: map[string]string{"ours": "2"}}, []runtime.Object{old}, func(t *testing.T, client *fake.Clientset, _ chan<- struct{}) {
		n := getNode(t, client)
		if n.Labels["theirs"] != "1" || n.Labels["ours"] != "2" || !n.Spec.Unschedulable || n.Spec.PodCIDR != "10.42.1.0/24" {
			t.Errorf("node = %+v", n)
		}
		if len(n.Status.Conditions) != 5 {
			t.Errorf("conditions = %+v", n.Status.Conditions)
		}
	})
}

// TestResourcesOfDevicesAndOfOthers: what an administrator wrote stays, what a plugin had on an earlier machine becomes zero.
func TestResourcesOfDevicesAndOfOthers(t *testing.T) {
	five := corev1.ResourceList{"example.com/old": resource.MustParse("5"), "example.com/gpu": resource.MustParse("5")}
	for forget, want := range map[bool]string{false: "5", true: "0"} {
		old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Capacity: five, Allocatable: five}}
		var broken atomic.Bool
		cfg := Config{ForgetExtended: forget, Devices: func() (capacity, allocatable corev1.ResourceList) {
			healthy := "2"
			if broken.Load() {
				healthy = "1"
			}
			return corev1.ResourceList{"example.com/gpu": resource.MustParse("2")}, corev1.ResourceList{"example.com/gpu": resource.MustParse(healthy)}
		}}
		inBubble(t, cfg, []runtime.Object{old}, func(t *testing.T, client *fake.Clientset, changed chan<- struct{}) {
			check := func(list corev1.ResourceList, name corev1.ResourceName, want string) {
				t.Helper()
				if got := list[name]; got.String() != want {
					t.Errorf("%s: %s, not %s", name, got.String(), want)
				}
			}
			check(getNode(t, client).Status.Capacity, "example.com/old", want)
			check(getNode(t, client).Status.Allocatable, "example.com/old", want)
			broken.Store(true)
			changed <- struct{}{}
			synctest.Wait()
			check(getNode(t, client).Status.Capacity, "example.com/gpu", "2")
			check(getNode(t, client).Status.Allocatable, "example.com/gpu", "1")
			check(getNode(t, client).Status.Capacity, corev1.ResourcePods, "110")
			n := getNode(t, client)
			n.Status.Capacity["example.com/old"] = resource.MustParse("7") // by an administrator
			if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(answerPause)
			changed <- struct{}{}
			synctest.Wait()
			check(getNode(t, client).Status.Allocatable, "example.com/old", "7")
		})
	}
}

// TestAnnotationsAndConditionsOfTheWiring are on the Node soon after they change, beside those of others.
func TestAnnotationsAndConditionsOfTheWiring(t *testing.T) {
	old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{"theirs": "1", "ours": "0"}}}
	var value atomic.Value
	value.Store("a")
	cfg := Config{
		Annotations: func() map[string]string { return map[string]string{"ours": value.Load().(string)} },
		Conditions: func() []corev1.NodeCondition {
			return []corev1.NodeCondition{{Type: "PodNetworkProblem", Status: corev1.ConditionTrue, Message: value.Load().(string)}}
		},
	}
	inBubble(t, cfg, []runtime.Object{old}, func(t *testing.T, client *fake.Clientset, _ chan<- struct{}) {
		for _, want := range []string{"a", "b"} {
			value.Store(want)
			time.Sleep(defaultCheckInterval + time.Second)
			n := getNode(t, client)
			if n.Annotations["ours"] != want || n.Annotations["theirs"] != "1" {
				t.Errorf("annotations: %v, want %s", n.Annotations, want)
			}
			if last := n.Status.Conditions[len(n.Status.Conditions)-1]; last.Message != want {
				t.Errorf("condition: %+v, want %s", last, want)
			}
		}
		client.ClearActions()
		time.Sleep(3 * defaultCheckInterval)
		for _, action := range client.Actions() {
			if action.GetVerb() == "patch" && action.GetResource().Resource == "nodes" {
				t.Errorf("nothing changed, but %v", action)
			}
		}
	})
}

func TestStatusIsWrittenOnChangeAndEveryFiveMinutes(t *testing.T) {
	var broken atomic.Bool
	ready := func(context.Context) error {
		if broken.Load() {
			return errors.New("container runtime is down")
		}
		return nil
	}
	inBubble(t, Config{Ready: ready, LeaseInterval: time.Hour}, nil, func(t *testing.T, client *fake.Clientset, _ chan<- struct{}) {
		patches := func() int {
			n := 0
			for _, a := range client.Actions() {
				if a.Matches("patch", "nodes") {
					n++
				}
			}
			return n
		}
		first := patches()
		time.Sleep(4 * time.Minute)
		if n := patches() - first; n != 0 {
			t.Errorf("%d status writes while nothing changed", n)
		}
		time.Sleep(2 * time.Minute)
		if n := patches() - first; n != 1 {
			t.Errorf("%d status writes in six minutes, want 1", n)
		}
		broken.Store(true)
		time.Sleep(defaultCheckInterval + time.Second)
		if c := readyOf(getNode(t, client)); c.Status != corev1.ConditionFalse || c.Message != "container runtime is down" {
			t.Errorf("Ready = %+v", c)
		}
	})
}

func TestLeaseIsRenewedAndRecreated(t *testing.T) {
	inBubble(t, Config{}, nil, func(t *testing.T, client *fake.Clientset, _ chan<- struct{}) {
		leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
		time.Sleep(time.Minute)
		l, err := leases.Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil || *l.Spec.HolderIdentity != "n1" || *l.Spec.LeaseDurationSeconds != 40 || time.Since(l.Spec.RenewTime.Time) > DefaultLeaseInterval {
			t.Fatalf("lease = %+v, %v", l, err)
		}
		if err := leases.Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * DefaultLeaseInterval)
		if _, err := leases.Get(t.Context(), "n1", metav1.GetOptions{}); err != nil {
			t.Errorf("the lease did not come back: %v", err)
		}
	})
}

func TestDeletedNodeComesBack(t *testing.T) {
	inBubble(t, Config{StatusInterval: time.Minute}, nil, func(t *testing.T, client *fake.Clientset, _ chan<- struct{}) {
		if err := client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if c := readyOf(getNode(t, client)); c.Status != corev1.ConditionTrue {
			t.Errorf("Ready = %+v", c)
		}
	})
}

func TestRegistrationWaitsForTheAPI(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var away atomic.Bool
		away.Store(true)
		client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errors.New("connection refused")
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Run(ctx, Config{Name: "n1", Client: client, DataDir: dir, Addresses: func() []corev1.NodeAddress { return []corev1.NodeAddress{{Address: "x"}} }})
		}()
		time.Sleep(time.Minute)
		away.Store(false)
		time.Sleep(registerRetryMax + time.Second)
		getNode(t, client)
		cancel()
		<-done
	})
}

// setReady plays the servers, which write what they hold of the node.
func setReady(t *testing.T, client *fake.Clientset, status corev1.ConditionStatus) {
	t.Helper()
	n := getNode(t, client)
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			n.Status.Conditions[i].Status, n.Status.Conditions[i].Reason = status, "NodeStatusUnknown"
		}
	}
	if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestWhatOthersWroteIsCorrectedAtOnceButNotInAQuarrel(t *testing.T) {
	inBubble(t, Config{LeaseInterval: time.Hour}, nil, func(t *testing.T, client *fake.Clientset, changed chan<- struct{}) {
		setReady(t, client, corev1.ConditionUnknown)
		changed <- struct{}{}
		synctest.Wait()
		if c := readyOf(getNode(t, client)); c.Status != corev1.ConditionTrue {
			t.Errorf("Ready = %+v right after the partition", c)
		}
		setReady(t, client, corev1.ConditionUnknown)
		changed <- struct{}{}
		synctest.Wait()
		if c := readyOf(getNode(t, client)); c.Status != corev1.ConditionUnknown {
			t.Errorf("corrected twice within %v", answerPause)
		}
		time.Sleep(answerPause)
		synctest.Wait()
		if c := readyOf(getNode(t, client)); c.Status != corev1.ConditionTrue {
			t.Errorf("Ready = %+v after the pause", c)
		}
		client.ClearActions()
		changed <- struct{}{}
		synctest.Wait()
		for _, a := range client.Actions() {
			if a.GetVerb() != "get" {
				t.Errorf("nothing to correct, but %s %s", a.GetVerb(), a.GetResource().Resource)
			}
		}
	})
}

func TestADeletedNodeAsksForItsPodCIDR(t *testing.T) {
	inBubble(t, Config{Claim: map[string]string{"whose": "mine"}}, nil, func(t *testing.T, client *fake.Clientset, changed chan<- struct{}) {
		n := getNode(t, client)
		n.Spec.PodCIDR, n.Spec.PodCIDRs = "10.42.3.0/24", []string{"10.42.3.0/24"}
		if _, err := client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		changed <- struct{}{}
		synctest.Wait()
		if err := client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		changed <- struct{}{}
		synctest.Wait()
		if n := getNode(t, client); n.Annotations[formerPodCIDR] != "10.42.3.0/24" || n.Annotations["whose"] != "mine" {
			t.Errorf("asks for %v: its pods have addresses of another range, or it is nobody's", n.Annotations)
		} else if n.Spec.PodCIDR != "" {
			t.Errorf("pod CIDR = %q: a node may not give itself one", n.Spec.PodCIDR)
		}
	})
}

// TestOfAServerThatKnowsNoClaimsTheNodeIsMadeWithoutIt, or adopted if it is there: such a server refuses before it looks.
func TestOfAServerThatKnowsNoClaimsTheNodeIsMadeWithoutIt(t *testing.T) {
	for name, there := range map[string][]runtime.Object{
		"new": nil, "adopted": {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{"whose": "kept"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			older := fake.NewClientset(there...)
			older.PrependReactor("create", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if _, claimed := action.(clienttesting.CreateAction).GetObject().(*corev1.Node).Annotations["whose"]; claimed {
					return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "n1", errors.New("not allowed to modify the annotation"))
				}
				return false, nil, nil
			})
			mine := Config{Client: older, Claim: map[string]string{"whose": "mine"}, Labels: map[string]string{"a": "b"}}
			inBubble(t, mine, nil, func(t *testing.T, client *fake.Clientset, _ chan<- struct{}) {
				n := getNode(t, client)
				if whose := n.Annotations["whose"]; readyOf(n).Status != corev1.ConditionTrue || n.Labels["a"] != "b" || (whose == "kept") != (there != nil) {
					t.Errorf("%+v", n)
				}
			})
		})
	}
}

// TestAddressesOfOneTypeAreAllWritten, in their order, and nothing else goes with them.
func TestAddressesOfOneTypeAreAllWritten(t *testing.T) {
	addresses := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeHostName, Address: "n1"}}
	second := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "2001:db8::1"}
	inBubble(t, Config{Addresses: func() []corev1.NodeAddress { return addresses }}, nil, func(t *testing.T, client *fake.Clientset, changed chan<- struct{}) {
		for _, wanted := range [][]corev1.NodeAddress{
			{addresses[0], second, addresses[1]}, {second, addresses[0], addresses[1]}, {addresses[0], addresses[1]}, {addresses[0]},
		} {
			addresses = wanted
			changed <- struct{}{}
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := getNode(t, client).Status; !slices.Equal(got.Addresses, wanted) || len(got.Conditions) == 0 {
				t.Errorf("written: %v, want %v", got.Addresses, wanted)
			}
		}
	})
}
