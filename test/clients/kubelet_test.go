package clients

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const (
	// certificateLife is short, so that the kubelet renews its certificates during the test: at 70 to 90 % of it.
	certificateLife = 90 * time.Second
	// measureTimeout bounds how long it takes until the usage of new pods is known.
	measureTimeout = 90 * time.Second

	// approveInterval is how often the administrator looks for requests that wait.
	approveInterval = 5 * time.Second

	servingSigner = "kubernetes.io/kubelet-serving"
	clientSigner  = "kubernetes.io/kube-apiserver-client-kubelet"
	nodeUser      = "system:node:" + stockName
)

var (
	leases    = schemaOf("coordination.k8s.io", "v1", "leases")
	claims    = schemaOf("resource.k8s.io", "v1", "resourceclaims")
	published = schemaOf("resource.k8s.io", "v1", "resourceslices")
	requests  = schemaOf("certificates.k8s.io", "v1", "certificatesigningrequests")
)

// TestKubelet lets upstream's kubelet be a node, on `setpoint cri` (root): each version, one after the other.
func TestKubelet(t *testing.T) {
	for _, version := range versionsOf(t, "kubelet") {
		t.Run(version, func(t *testing.T) { kubeletIsANode(t, version) })
	}
}

func kubeletIsANode(t *testing.T, version string) {
	if !alone(t) {
		return
	}
	c := startServers(t, "--cluster-signing-duration", certificateLife.String())
	n := newStockNode(t, c, version)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *cluster, *stockNode)
	}{
		{"joins by a token", joinByToken},
		{"is ready", becomeReady},
		{"runs pods", runPods},
		{"answers servers", answerServers},
		{"answers who may ask", answerUsers},
		{"measures", measureUsage},
		{"keeps static pods", keepStaticPods},
		{"gives devices", giveDevices},
		{"is killed", killKubelet},
		{"outlasts the leading server", outlastLeader},
		{"renews its certificate", renewCertificate},
		{"is drained", drainNode},
		{"stops", stopKubelet},
		{"leaves nothing", leaveNothing},
	} {
		began := time.Now()
		step.run(t, c, n)
		t.Logf("%s: %.1f s", step.name, time.Since(began).Seconds())
	}
}

// joinByToken starts the kubelet with nothing but a token. Its client certificate comes by itself; the one that it serves
// with is for an administrator to approve.
func joinByToken(t *testing.T, c *cluster, n *stockNode) {
	info := c.kubectl(t, "", "-n", "kube-public", "get", "configmap", "cluster-info", "-o", "jsonpath={.data.kubeconfig}")
	info = regexp.MustCompile(`server: \S+`).ReplaceAllString(info, "server: "+c.config.Host) // the address of the balancer
	c.kubectl(t, "", "-n", "kube-public", "patch", "configmap", "cluster-info", "--type=merge", "-p", fmt.Sprintf(`{"data":{"kubeconfig":%q}}`, info))
	token := c.setpoint(t, "token", "create", "--ttl", "5m", "-o", "kubeconfig")
	mustf(t, os.WriteFile(n.path("bootstrap.kubeconfig"), []byte(token), 0o600), "writing the token")

	n.start(t)
	c.awaitAny(t, requests, "", fields.OneTermEqualSelector("spec.signerName", clientSigner), "approved and signed", func(all []*unstructured.Unstructured) bool {
		return len(all) == 1 && hasCondition("Approved")(all[0]) && strings.HasPrefix(requester(all[0]), "system:bootstrap:") && signed(all[0])
	})
	var name string
	c.awaitAny(t, requests, "", fields.OneTermEqualSelector("spec.signerName", servingSigner), "there", func(all []*unstructured.Unstructured) bool {
		if len(all) == 0 {
			return false
		}
		name = all[0].GetName()
		return requester(all[0]) == nodeUser
	})
	c.kubectl(t, "", "certificate", "approve", name)
	c.await(t, requests, "", name, "signed", signed)
	c.approveRenewals(t)
}

func requester(o *unstructured.Unstructured) string {
	user, _, _ := unstructured.NestedString(o.Object, "spec", "username")
	return user
}

func signed(o *unstructured.Unstructured) bool {
	certificate, _, _ := unstructured.NestedString(o.Object, "status", "certificate")
	return certificate != ""
}

// approveRenewals plays the administrator for the certificates with which the node serves later. A server that is killed
// may take an approval with it, so what waits is looked at again.
func (c *cluster) approveRenewals(t *testing.T) {
	t.Helper()
	informer := dynamicinformer.NewFilteredDynamicInformer(c.dynamic, requests, "", approveInterval, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.signerName", servingSigner).String()
	}).Informer()
	approve := func(o any) {
		csr := o.(*unstructured.Unstructured)
		if requester(csr) != nodeUser || hasCondition("Approved")(csr) {
			return
		}
		if out, err := c.try("certificate", "approve", csr.GetName()); err != nil && t.Context().Err() == nil {
			t.Logf("approving %s: %v\n%s", csr.GetName(), err, out)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: approve, UpdateFunc: func(_, o any) { approve(o) }})
	mustf(t, err, "watching requests")
	var watching sync.WaitGroup
	watching.Go(func() { informer.RunWithContext(t.Context()) })
	t.Cleanup(watching.Wait)
}

// becomeReady looks at what the kubelet says of its machine.
func becomeReady(t *testing.T, c *cluster, n *stockNode) {
	c.await(t, nodes, "", stockName, "Ready", hasCondition("Ready"))
	node, err := c.client.CoreV1().Nodes().Get(t.Context(), stockName, metav1.GetOptions{})
	mustf(t, err, "getting the node")
	if node.Status.NodeInfo.KubeletVersion != n.version || node.Status.Capacity.Cpu().IsZero() || node.Status.Allocatable.Memory().IsZero() {
		t.Errorf("kubelet %s, capacity %v", node.Status.NodeInfo.KubeletVersion, node.Status.Capacity)
	}
	if len(node.Status.Addresses) == 0 || node.Status.Addresses[0] != (corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: aloneAddress}) {
		t.Errorf("addresses %v", node.Status.Addresses)
	}
	if node.Spec.PodCIDR == "" || len(node.Spec.Taints) > 0 {
		t.Errorf("pod CIDR %q, taints %v", node.Spec.PodCIDR, node.Spec.Taints)
	}
	c.awaitRenewal(t, time.Now())
}

// awaitRenewal waits until the node has renewed its Lease after a time.
func (c *cluster) awaitRenewal(t *testing.T, after time.Time) {
	t.Helper()
	c.await(t, leases, "kube-node-lease", stockName, "renewed", func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		text, _, _ := unstructured.NestedString(o.Object, "spec", "renewTime")
		renewed, err := time.Parse(time.RFC3339Nano, text)
		return err == nil && renewed.After(after)
	})
}

// runPods runs what most Deployments have: a probe, settings, a secret and a token; and a pod with users of its own.
func runPods(t *testing.T, c *cluster, _ *stockNode) {
	c.kubectl(t, "", "apply", "-f", "testdata/kubelet/web.yaml")
	c.await(t, deployments, "default", "web", "ready", ready(2))
	c.await(t, pods, "default", "own-users", "Ready", hasCondition("Ready"))
	for _, asked := range []struct{ pod, file, want string }{
		{"deployment/web", "/all/colour", "^green$"},
		{"deployment/web", "/all/word", "^sesame$"},
		{"deployment/web", "/all/node", `^app="web"`},
		{"deployment/web", "/all/token", "^ey"},
		{"own-users", "/settings/colour", "^green$"},
		{"own-users", "/proc/self/uid_map", `^ +0 +[1-9]\d* +65536\n$`},
	} {
		if got := c.kubectl(t, "", "exec", asked.pod, "-c", "box", "--", "cat", asked.file); !regexp.MustCompile(asked.want).MatchString(got) {
			t.Errorf("%s in %s: %q, want %s", asked.file, asked.pod, got, asked.want)
		}
	}
	if got := c.kubectl(t, "", "exec", "own-users", "--", "owners", "/settings/colour", "/scratch"); !regexp.MustCompile(`(?m)^/scratch 0 0 .* true$`).MatchString(got) {
		t.Errorf("volumes of a pod with users of its own:\n%s", got)
	}
}

// answerServers goes to the kubelet through the servers: logs, commands, ports.
func answerServers(t *testing.T, c *cluster, _ *stockNode) {
	if got := c.kubectl(t, "", "logs", "deployment/web", "-c", "web"); got == "" {
		t.Error("no logs")
	}
	if got := c.kubectl(t, "many words", "exec", "-i", "deployment/web", "-c", "box", "--", "cat"); got != "many words" {
		t.Errorf("cat: %q", got)
	}
	if out, err := c.try("exec", "deployment/web", "-c", "box", "--", "exit", "7"); err == nil || !strings.Contains(out, "exit code 7") {
		t.Errorf("exit 7: %v: %s", err, out)
	}
	forward := mustStart(t, "Forwarding from 127.0.0.1", []string{"KUBECONFIG=" + c.kubeconfig}, "kubectl", "port-forward", "deployment/web", ":8080")
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(forward.output.String())
	answer, err := http.Get("http://" + address + "/healthz")
	mustf(t, err, "asking the forwarded port")
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the forwarded port: %s", answer.Status)
	}
	forward.kill()
	if got := c.kubectl(t, "", "get", "--raw", "/api/v1/nodes/"+stockName+"/proxy/configz"); !strings.Contains(got, "kubeletconfig") {
		t.Errorf("configz: %s", got)
	}
}

// answerUsers asks the kubelet's port directly: it asks the servers who that is, and whether he may.
func answerUsers(t *testing.T, c *cluster, _ *stockNode) {
	c.kubectl(t, "", "create", "serviceaccount", "monitor")
	c.kubectl(t, "", "create", "clusterrole", "monitor", "--verb=get", "--resource=nodes/metrics")
	token := strings.TrimSpace(c.kubectl(t, "", "create", "token", "monitor"))
	ask := func(bearer string) int {
		status, certificate := askKubelet(t, "/metrics/resource", bearer)
		if certificate.Subject.CommonName != nodeUser || certificate.Issuer.CommonName == certificate.Subject.CommonName {
			t.Errorf("it serves with a certificate of %s, by %s", certificate.Subject, certificate.Issuer)
		}
		return status
	}
	if got := ask(""); got != http.StatusUnauthorized {
		t.Errorf("without a token: %d", got)
	}
	if got := ask(token); got != http.StatusForbidden {
		t.Errorf("without a role: %d", got)
	}
	c.kubectl(t, "", "create", "clusterrolebinding", "monitor", "--clusterrole=monitor", "--serviceaccount=default:monitor")
	c.kubectl(t, "", "create", "serviceaccount", "other") // what is refused is remembered for half a minute
	other := strings.TrimSpace(c.kubectl(t, "", "create", "token", "other"))
	c.kubectl(t, "", "create", "clusterrolebinding", "other", "--clusterrole=monitor", "--serviceaccount=default:other")
	if got := ask(other); got != http.StatusOK {
		t.Errorf("with a role: %d", got)
	}
}

func askKubelet(t *testing.T, path, bearer string) (status int, served *x509.Certificate) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+net.JoinHostPort(aloneAddress, "10250")+path, http.NoBody)
	mustf(t, err, "asking the kubelet")
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	// Only servers trust what nodes serve with.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	mustf(t, err, "asking the kubelet")
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	mustf(t, err, "reading its answer")
	return answer.StatusCode, answer.TLS.PeerCertificates[0]
}

// measureUsage waits for kubectl top, and for what the kubelet reads in the control groups that it made for pods: their limits
// hold only if containers are there.
func measureUsage(t *testing.T, c *cluster, _ *stockNode) {
	for _, what := range [][]string{{"top", "node", stockName}, {"top", "pod", "-l", "app=web"}} {
		look(t, measureTimeout, strings.Join(what, " "), func() (string, bool) {
			out, err := c.try(what...)
			return out, err == nil
		})
	}
	look(t, measureTimeout, "usage of whole pods", func() (string, bool) {
		out, err := c.try("get", "--raw", "/api/v1/nodes/"+stockName+"/proxy/stats/summary")
		var summary struct {
			Pods []struct {
				Memory struct{ WorkingSetBytes int64 }
			}
		}
		if err == nil {
			err = json.Unmarshal([]byte(out), &summary)
		}
		known := 0
		for _, pod := range summary.Pods {
			if pod.Memory.WorkingSetBytes > 0 {
				known++
			}
		}
		return fmt.Sprint(out, err), err == nil && known > 0 && known == len(summary.Pods)
	})
}

// keepStaticPods: a pod of a file has a mirror, which comes back if it is deleted, and goes with the file.
func keepStaticPods(t *testing.T, c *cluster, n *stockNode) {
	const mirror = "keeper-" + stockName
	manifest, err := os.ReadFile("testdata/kubelet/static.yaml")
	mustf(t, err, "reading a manifest")
	mustf(t, os.WriteFile(n.path("static/keeper.yaml"), manifest, 0o644), "writing it")
	c.await(t, pods, "default", mirror, "Ready", hasCondition("Ready"))
	first := c.ids(t, mirror)
	c.kubectl(t, "", "delete", "pod", mirror, "--wait=false") // a kubelet of 1.37 makes it again with the next syncFrequency
	c.await(t, pods, "default", mirror, "back", func(o *unstructured.Unstructured) bool {
		return o != nil && string(o.GetUID()) != first.uid && hasCondition("Ready")(o)
	})
	if again := c.ids(t, mirror); again.containers != first.containers {
		t.Errorf("its container was %s and is %s", first.containers, again.containers)
	}
	mustf(t, os.Remove(n.path("static/keeper.yaml")), "removing the manifest")
	c.await(t, pods, "default", mirror, "gone", gone)
}

// ids tell whether a pod and its containers are the same as before.
type ids struct{ uid, containers string }

func (c *cluster) ids(t *testing.T, name string) ids {
	t.Helper()
	pod, err := c.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	mustf(t, err, "getting pod %s", name)
	return idsOf(pod)
}

func idsOf(pod *corev1.Pod) ids {
	found := ids{uid: string(pod.UID)}
	for _, status := range pod.Status.ContainerStatuses {
		found.containers += fmt.Sprintf("%s %s restarted %d\n", status.Name, status.ContainerID, status.RestartCount)
	}
	return found
}

// giveDevices gives a pod the device of a DRA driver, and takes it back.
func giveDevices(t *testing.T, c *cluster, n *stockNode) {
	driver := startDongles(t, c, n)
	c.awaitAny(t, published, "", fields.Everything(), "published", func(all []*unstructured.Unstructured) bool { return len(all) == 1 })
	c.kubectl(t, "", "apply", "-f", "testdata/kubelet/device.yaml")
	c.await(t, pods, "default", "user", "Ready", hasCondition("Ready"))
	if got := c.kubectl(t, "", "exec", "user", "--", "cat", "/dongle/says"); got != "I am a dongle\n" {
		t.Errorf("the device says %q", got)
	}
	if got := c.kubectl(t, "", "exec", "user", "--", "ls", "/dev"); !strings.Contains(got, "dongle\n") {
		t.Errorf("no /dev/dongle:\n%s", got)
	}
	if driver.inUse() != 1 {
		t.Errorf("%d claims are prepared", driver.inUse())
	}
	c.kubectl(t, "", "delete", "pod", "user")
	c.awaitAny(t, claims, "default", fields.Everything(), "gone", func(all []*unstructured.Unstructured) bool { return len(all) == 0 })
	if driver.inUse() != 0 {
		t.Errorf("%d claims are still prepared", driver.inUse())
	}
}

// killKubelet: pods go on without it, and with the next one.
func killKubelet(t *testing.T, c *cluster, n *stockNode) {
	before := c.allIDs(t)
	n.kubelet.kill()
	n.start(t)
	c.awaitRenewal(t, time.Now())
	c.kubectl(t, "", "scale", "deployment", "web", "--replicas=3") // once it runs, the new kubelet has looked at the others
	c.await(t, deployments, "default", "web", "ready", ready(3))
	c.sameIDs(t, before)
}

func (c *cluster) allIDs(t *testing.T) map[string]ids {
	t.Helper()
	list, err := c.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	mustf(t, err, "listing pods")
	all := map[string]ids{}
	for i := range list.Items {
		all[list.Items[i].Name] = idsOf(&list.Items[i])
	}
	return all
}

// sameIDs wants pods to be those that they were.
func (c *cluster) sameIDs(t *testing.T, before map[string]ids) {
	t.Helper()
	for name, was := range before {
		if is := c.ids(t, name); is != was {
			t.Errorf("%s was\n%v\nand is\n%v", name, was, is)
		}
	}
}

func outlastLeader(t *testing.T, c *cluster, _ *stockNode) {
	before := c.allIDs(t)
	c.killLeader(t)
	c.awaitRenewal(t, time.Now())
	c.kubectl(t, "", "scale", "deployment", "web", "--replicas=4")
	c.await(t, deployments, "default", "web", "ready", ready(4))
	c.sameIDs(t, before)
}

// renewCertificate waits for a second certificate, made before the first one ended, and until that has ended.
func renewCertificate(t *testing.T, c *cluster, _ *stockNode) {
	c.awaitAny(t, requests, "", fields.OneTermEqualSelector("spec.signerName", clientSigner), "renewed", func(all []*unstructured.Unstructured) bool {
		return len(all) > 1 && !slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return !signed(o) })
	})
	list, err := c.client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.signerName=" + clientSigner})
	mustf(t, err, "listing requests")
	var all []*x509.Certificate
	for _, request := range list.Items {
		block, _ := pem.Decode(request.Status.Certificate)
		if block == nil {
			continue // the next one has been asked for meanwhile
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		mustf(t, err, "reading a certificate")
		all = append(all, certificate)
	}
	slices.SortFunc(all, func(a, b *x509.Certificate) int { return a.NotBefore.Compare(b.NotBefore) })
	if !all[1].NotBefore.Before(all[0].NotAfter) {
		t.Errorf("the second one begins at %s, the first one ended at %s", all[1].NotBefore, all[0].NotAfter)
	}
	c.awaitRenewal(t, all[0].NotAfter)
}

func drainNode(t *testing.T, c *cluster, _ *stockNode) {
	if out, err := c.try("drain", stockName, "--timeout=60s"); err == nil || !strings.Contains(out, "own-users") { // it has no controller
		t.Errorf("draining a node with a pod that nobody makes again: %v\n%s", err, out)
	}
	c.kubectl(t, "", "drain", stockName, "--force", "--delete-emptydir-data", "--timeout=60s")
	list, err := c.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + stockName})
	mustf(t, err, "listing pods")
	if len(list.Items) > 0 {
		t.Errorf("%d pods are left", len(list.Items))
	}
	c.kubectl(t, "", "uncordon", stockName)
	c.await(t, deployments, "default", "web", "ready", ready(4))
}

// stopKubelet: the node is given up when its Lease ends, and is taken back. Its pods stay: there is no other node, and when
// all look dead nobody is evicted.
func stopKubelet(t *testing.T, c *cluster, n *stockNode) {
	before := c.allIDs(t)
	mustf(t, n.kubelet.stop(), "stopping the kubelet")
	c.await(t, nodes, "", stockName, "given up", func(o *unstructured.Unstructured) bool {
		return !hasCondition("Ready")(o) && hasTaint(o, "node.kubernetes.io/unreachable")
	})
	n.start(t)
	c.await(t, nodes, "", stockName, "taken back", func(o *unstructured.Unstructured) bool {
		return hasCondition("Ready")(o) && !hasTaint(o, "node.kubernetes.io/unreachable")
	})
	c.await(t, deployments, "default", "web", "ready", ready(4))
	c.sameIDs(t, before)
}

func hasTaint(o *unstructured.Unstructured, key string) bool {
	taints, _, _ := unstructured.NestedSlice(o.Object, "spec", "taints")
	for _, taint := range taints {
		if taint.(map[string]any)["key"] == key {
			return true
		}
	}
	return false
}

func leaveNothing(t *testing.T, c *cluster, n *stockNode) {
	c.kubectl(t, "", "delete", "--ignore-not-found", "-f", "testdata/kubelet/web.yaml", "--cascade=foreground", "--timeout=60s")
	c.awaitAny(t, pods, "default", fields.Everything(), "gone", func(all []*unstructured.Unstructured) bool { return len(all) == 0 })
	n.awaitEmpty(t)
	mustf(t, n.kubelet.stop(), "stopping the kubelet")
}
