package setpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// counter is a ConfigMap that the administrator counts up, and the watch sees.
const counter = "counter"

// load asks as everybody and watches, until it is ended: then the watch has seen everything.
func (y *years) load(edge *edge) (end func()) {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: counter}, Data: map[string]string{"n": "0"}}
	m, err := y.inside.CoreV1().ConfigMaps("default").Create(y.Context(), m, metav1.CreateOptions{})
	y.must(err)
	asking, stopAsking := context.WithCancel(y.Context())
	watching, stopWatching := context.WithCancel(y.Context())
	var asks, watches sync.WaitGroup
	var counted, seen atomic.Int64
	asks.Go(func() { y.ask(asking, edge, &counted) })
	watches.Go(func() { y.watch(watching, m.ResourceVersion, &seen) })
	y.Cleanup(func() { // of a test that fails
		stopAsking()
		stopWatching()
		asks.Wait()
		watches.Wait()
	})
	return func() {
		stopAsking()
		asks.Wait()
		y.until("the watch to see everything", func() bool { return seen.Load() == counted.Load() })
		stopWatching()
		watches.Wait()
	}
}

// ask asks as everybody every half second.
func (y *years) ask(ctx context.Context, edge *edge, counted *atomic.Int64) {
	administrator, anna, robot := administrator{years: y}, y.anna(), y.robot()
	for ; ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
		n := counted.Add(1)
		y.note("administrator", y.patiently(func() error { return y.count(administrator.client(), n) }))
		y.note("person", y.patiently(func() error { return y.get(anna.client()) }))
		y.note("account", y.patiently(func() error { return y.get(robot.client()) }))
		y.note("agent", y.patiently(edge.beat))
	}
}

// count writes a number.
func (y *years) count(client kubernetes.Interface, n int64) error {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: counter}, Data: map[string]string{"n": strconv.FormatInt(n, 10)}}
	_, err := client.CoreV1().ConfigMaps("default").Update(y.Context(), m, metav1.UpdateOptions{})
	return err
}

// watch sees each number after the one before, with a service account's token, and goes on where it was when a watch ends.
func (y *years) watch(ctx context.Context, revision string, seen *atomic.Int64) {
	robot := y.robot()
	for ctx.Err() == nil {
		var w watch.Interface
		err := y.patiently(func() (err error) {
			w, err = robot.client().CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{
				FieldSelector: "metadata.name=" + counter, ResourceVersion: revision, TimeoutSeconds: new(int64(60)),
			})
			return err
		})
		if ctx.Err() != nil {
			return
		}
		y.note("watch", err)
		if err != nil {
			return
		}
		for event := range w.ResultChan() {
			if ctx.Err() != nil {
				return
			}
			if isCut(event) && y.isOn() {
				break // as every client does, it goes on where it was
			}
			m, ok := event.Object.(*corev1.ConfigMap)
			if next := seen.Load() + 1; !ok || m.Data["n"] != strconv.FormatInt(next, 10) {
				y.note("watch", fmt.Errorf("in place of %d came %s: %v", next, event.Type, event.Object))
				return
			}
			revision = m.ResourceVersion
			seen.Add(1)
		}
	}
}

// get is what everybody may ask.
func (y *years) get(client kubernetes.Interface) error {
	_, err := client.CoreV1().Pods("default").List(y.Context(), metav1.ListOptions{})
	return err
}

// over asks a replica over TLS, or another one while that is away, and judges its certificate by the cluster's time.
func (y *years) over(config *rest.Config) kubernetes.Interface {
	config.TLSClientConfig.ServerName = everyServer
	own, err := rest.TLSConfigFor(config)
	y.must(err)
	own.Time = y.now
	through := http.RoundTripper(y.transport(own))
	if config.BearerToken != "" {
		through = transport.NewBearerAuthRoundTripper(config.BearerToken, through)
	}
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: config.Host, Transport: through, QPS: -1})
}

// everyServer is a name that the certificate of each server bears.
const everyServer = "kubernetes"

func (y *years) transport(config *tls.Config) *http.Transport {
	return &http.Transport{TLSClientConfig: config, DialContext: y.dialAny, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}
}

// identified asks the i-th replica with a certificate, as a kubeconfig does.
func (y *years) identified(id *trust.Identity, i int) kubernetes.Interface {
	text, err := trust.Kubeconfig(id, []trust.Server{{Name: "server", Endpoint: y.c.endpoint(i)}})
	y.must(err)
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	y.must(err)
	return y.over(config)
}

// administrator uses the certificate that a server keeps for him, whatever that is now.
type administrator struct {
	*years
	shown *trust.Identity
	last  kubernetes.Interface
}

func (a *administrator) client() kubernetes.Interface {
	if newest := a.c.trust.Copied().Admin; newest != a.shown {
		a.shown, a.last = newest, a.identified(newest, 0)
	}
	return a.last
}

// renewing is somebody with credentials of a year. He has others made when he has had them for long enough, or some time after the
// authorities have changed.
type renewing struct {
	*years
	// make makes the credentials, with the authorities that the cluster publishes; they are used for the time lasting.
	make    func(bundle []byte) kubernetes.Interface
	lasting time.Duration

	last    kubernetes.Interface
	made    time.Time
	bundle  []byte
	changed time.Time // zero: the bundle is the newest
}

// anna is a person, with a certificate.
func (y *years) anna() *renewing { return &renewing{years: y, make: y.person, lasting: year * 2 / 3} }

// robot is a program, with a service account's token.
func (y *years) robot() *renewing { return &renewing{years: y, make: y.account, lasting: y.tokensLast} }

func (r *renewing) client() kubernetes.Interface {
	m, err := r.inside.CoreV1().ConfigMaps("default").Get(r.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	r.must(err)
	now, bundle := r.now(), []byte(m.Data["ca.crt"])
	if r.changed.IsZero() && !bytes.Equal(bundle, r.bundle) {
		r.changed = now
	}
	due := r.last == nil || now.Sub(r.made) > r.lasting
	if due || !r.changed.IsZero() && now.Sub(r.changed) > r.keptLater {
		r.last, r.made, r.bundle, r.changed = r.make(bundle), now, bundle, time.Time{}
	}
	return r.last
}

// account is a client with a service account's token.
func (y *years) account(bundle []byte) kubernetes.Interface {
	answer, err := y.inside.CoreV1().ServiceAccounts("default").CreateToken(y.Context(), "default", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(year / time.Second))},
	}, metav1.CreateOptions{})
	y.must(err)
	return y.over(&rest.Config{
		Host: "https://" + y.c.endpoint(2), BearerToken: answer.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: bundle},
	})
}

// person is a client with a certificate that the cluster has signed, as `setpoint kubeconfig anna` makes it.
func (y *years) person(bundle []byte) kubernetes.Interface {
	keyPEM, err := trust.NewKey()
	y.must(err)
	text, err := trust.NewRequest(pkix.Name{CommonName: "anna", Organization: []string{"team"}}, keyPEM)
	y.must(err)
	all := y.inside.CertificatesV1().CertificateSigningRequests()
	csr, err := all.Create(y.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "anna-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: text, SignerName: certificatesv1.KubeAPIServerClientSignerName, ExpirationSeconds: new(int32(year / time.Second)),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	y.must(err)
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Asked",
	})
	if _, err = all.UpdateApproval(y.Context(), csr.Name, csr, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		y.must(err) // else it was done by a server that died before it could say so, and is asked for again
	}
	y.until("a signature", func() bool {
		csr, err = all.Get(y.Context(), csr.Name, metav1.GetOptions{})
		y.must(err)
		return len(csr.Status.Certificate) > 0
	})
	return y.identified(&trust.Identity{CertPEM: csr.Status.Certificate, KeyPEM: keyPEM, CAPEM: bundle}, 1)
}
