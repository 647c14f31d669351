package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// stamp signs with a word.
type stamp string

func (s stamp) Sign(request *x509.CertificateRequest, _ []x509.ExtKeyUsage, _ x509.KeyUsage, _ time.Duration, _ time.Time) ([]byte, error) {
	return []byte(string(s) + " " + request.Subject.CommonName), nil
}

// authority knows one server, and tokens that take no name that begins with "more".
var authority = Authority{
	Signer: stamp("signed"), Serving: stamp("served"), NodeKey: nodeKey,
	JudgeName: func(node string) error {
		if node == "server-1" {
			return errors.New("a server's name")
		}
		return nil
	},
	Take: func(_ context.Context, token, node string) (string, error) {
		if strings.HasPrefix(node, "more") {
			return "token " + token + " takes no more", nil
		}
		return "", nil
	},
}

func nodeKey(node *corev1.Node) string { return node.Annotations["key"] }

var (
	client  = []certificatesv1.KeyUsage{"digital signature", "client auth"}
	serving = []certificatesv1.KeyUsage{"digital signature", "key encipherment", "server auth"}
)

func request(t *testing.T, signer, name, group string, dns []string, usages []certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{group}}, DNSNames: dns}
	if dns != nil {
		template.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: "kubernetes.io/" + signer, Usages: usages, Username: "boot",
		},
	}
}

func TestRequests(t *testing.T) {
	for name, c := range map[string]struct {
		signer, name, group string
		dns                 []string
		usages              []certificatesv1.KeyUsage
		approved            bool // by an administrator, before
		want                string
	}{
		"a client waits":               {"kube-apiserver-client", "jane", "dev", nil, client, false, ""},
		"a client is signed":           {"kube-apiserver-client", "jane", "dev", nil, client, true, "signed jane"},
		"nobody becomes a master":      {"kube-apiserver-client", "jane", "system:masters", nil, client, true, "reserved: system:masters"},
		"nobody becomes a server":      {"kube-apiserver-client", "jane", "system:setpoint:servers", nil, client, true, "reserved: system:setpoint:servers"},
		"nor one of an early version":  {"kube-apiserver-client", "jane", "setpoint:servers", nil, client, true, "reserved: setpoint:servers"},
		"no node has a server's name":  {"kube-apiserver-client-kubelet", "system:node:server-1", "system:nodes", nil, client, true, "a server's name"},
		"a client does not serve":      {"kube-apiserver-client", "jane", "dev", nil, serving, true, "usages do not match"},
		"a node joins":                 {"kube-apiserver-client-kubelet", "system:node:a", "system:nodes", nil, client, false, "update certificatesigningrequests/approval /r"},
		"a node with names waits":      {"kube-apiserver-client-kubelet", "system:node:a", "system:nodes", []string{"a"}, client, false, ""},
		"a node with names fails":      {"kube-apiserver-client-kubelet", "system:node:a", "system:nodes", []string{"a"}, client, true, "not allowed"},
		"no node's name":               {"kube-apiserver-client-kubelet", "root", "system:nodes", nil, client, true, "common name"},
		"a kubelet serves":             {"kubelet-serving", "system:node:a", "system:nodes", []string{"a"}, serving, true, "served system:node:a"},
		"a kubelet serving waits":      {"kubelet-serving", "system:node:a", "system:nodes", []string{"a"}, serving, false, ""},
		"a kubelet needs a name":       {"kubelet-serving", "system:node:a", "system:nodes", nil, serving, true, "at least one"},
		"another signer's is left out": {"legacy-unknown", "jane", "dev", nil, client, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := reconciletest.New(t)
				w.Client.PrependReactor("create", "subjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
					review := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
					review.Status.Allowed = review.Spec.User == "boot" && review.Spec.ResourceAttributes.Subresource == "nodeclient"
					return true, review, nil
				})
				csr := request(t, c.signer, c.name, c.group, c.dns, c.usages)
				if c.approved {
					csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
				}
				reconciletest.Add(w, csr)
				w.Run(New(authority))
				w.Settle()
				got, err := w.Client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "r", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				text := string(got.Status.Certificate)
				for _, condition := range got.Status.Conditions {
					if condition.Type == certificatesv1.CertificateFailed {
						text += condition.Message
					}
				}
				if !c.approved { // the fake API keeps no approval; that it was written is what counts
					text += strings.Join(w.Writes(), " ")
					text = strings.ReplaceAll(text, "create subjectaccessreviews /", "")
				}
				if c.want == "" && strings.Contains(text, "signed") || !strings.Contains(text, c.want) {
					t.Errorf("%q, want %q", text, c.want)
				}
				if c.want == "" && strings.Contains(text, "update") {
					t.Errorf("it was not to be touched: %s", text)
				}
				w.Writes()
				w.Settle()
				if writes := w.Writes(); len(writes) > 0 {
					t.Errorf("an unchanged world was written to: %v", writes)
				}
			})
		})
	}
}

// TestNamesOfNodes: who may ask for certificates of nodes gets those of names that are free.
func TestNamesOfNodes(t *testing.T) {
	const itself = "system:node:a"
	node := func(key string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"key": key}}}
	}
	for name, c := range map[string]struct {
		user string
		// before makes what there is, for a request of a key.
		before   func(w *reconciletest.World, asked *certificatesv1.CertificateSigningRequest)
		approved bool
	}{
		"a free name": {"boot", func(*reconciletest.World, *certificatesv1.CertificateSigningRequest) {}, true},
		"a living node's": {"boot", func(w *reconciletest.World, _ *certificatesv1.CertificateSigningRequest) {
			reconciletest.Add(w, node(""))
		}, false},
		"its own": {itself, func(w *reconciletest.World, _ *certificatesv1.CertificateSigningRequest) {
			reconciletest.Add(w, node(""))
		}, true},
		"its own, with another key": {itself, func(w *reconciletest.World, _ *certificatesv1.CertificateSigningRequest) {
			reconciletest.Add(w, node("other"))
		}, false},
		"another key's, unregistered": {"boot", func(w *reconciletest.World, _ *certificatesv1.CertificateSigningRequest) {
			other := request(t, "kube-apiserver-client-kubelet", itself, "system:nodes", nil, client)
			other.Name, other.UID = "before", "before"
			other.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
			other.Status.Certificate = []byte("signed")
			reconciletest.Add(w, other)
		}, false},
		"the same key's, unregistered": {"boot", func(w *reconciletest.World, asked *certificatesv1.CertificateSigningRequest) {
			other := asked.DeepCopy()
			other.Name, other.UID = "before", "before"
			other.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
			other.Status.Certificate = []byte("signed")
			reconciletest.Add(w, other)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := reconciletest.New(t)
				w.Client.PrependReactor("create", "subjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
					review := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
					review.Status.Allowed = true
					return true, review, nil
				})
				csr := request(t, "kube-apiserver-client-kubelet", itself, "system:nodes", nil, client)
				csr.UID, csr.Spec.Username = "asked", c.user
				c.before(w, csr)
				reconciletest.Add(w, csr)
				w.Run(New(authority))
				w.Settle()
				if got := strings.Contains(strings.Join(w.Writes(), " "), "certificatesigningrequests/approval /r"); got != c.approved {
					t.Errorf("approved %v, want %v", got, c.approved)
				}
			})
		})
	}
}

// TestNamesAreRefused: nobody waits for an administrator who asks for a server's name, or with a token that has taken its number of names.
func TestNamesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ user, node, want string }{
		"a server's name":           {"boot", "server-1", "a server's name"},
		"a token that took enough":  {"system:bootstrap:abcdef", "more-1", "token abcdef takes no more"},
		"a token that takes more":   {"system:bootstrap:abcdef", "one", ""},
		"somebody without a number": {"boot", "more-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := reconciletest.New(t)
				w.Client.PrependReactor("create", "subjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
					review := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
					review.Status.Allowed = true
					return true, review, nil
				})
				var answer certificatesv1.CertificateSigningRequestCondition
				w.Client.PrependReactor("update", "certificatesigningrequests", func(a ktesting.Action) (bool, runtime.Object, error) {
					csr := a.(ktesting.UpdateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
					answer = csr.Status.Conditions[0]
					return false, nil, nil
				})
				csr := request(t, "kube-apiserver-client-kubelet", "system:node:"+c.node, "system:nodes", nil, client)
				csr.Spec.Username = c.user
				reconciletest.Add(w, csr)
				w.Run(New(authority))
				w.Settle()
				if denied := answer.Type == certificatesv1.CertificateDenied; denied != (c.want != "") || denied && answer.Message != c.want {
					t.Errorf("%+v, want %q", answer, c.want)
				}
			})
		})
	}
}

func TestLife(t *testing.T) {
	for name, c := range map[string]struct {
		longest time.Duration
		asked   int32 // seconds; 0: nothing
		want    time.Duration
	}{
		"nothing is asked":               {0, 0, DefaultLife},
		"too little":                     {0, 1, minLife},
		"an hour":                        {0, 3600, time.Hour},
		"too much":                       {0, 1 << 30, DefaultLife},
		"nothing, with a duration":       {24 * time.Hour, 0, 24 * time.Hour},
		"an hour, with a duration":       {24 * time.Hour, 3600, time.Hour},
		"too much, with a duration":      {24 * time.Hour, 1 << 30, 24 * time.Hour},
		"more than a short duration":     {time.Minute, 3600, time.Minute},
		"too little of a short duration": {time.Minute, 1, time.Minute},
	} {
		csr := &certificatesv1.CertificateSigningRequest{}
		if c.asked != 0 {
			csr.Spec.ExpirationSeconds = &c.asked
		}
		if got := (&Authority{Life: c.longest}).lifeOf(csr); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
