package volumes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// issueTimeout is how long the first mount waits for a signer. After it the mount fails and is tried again,
	// which waits for the same request.
	issueTimeout = 10 * time.Second
	// renewalJitterMax spreads renewals of certificates that were issued together.
	renewalJitterMax = 5 * time.Minute
	// renewalOverdue after the time of renewal a pod is told that it has an old certificate.
	renewalOverdue = 10 * time.Minute
)

// certificates are the keys and certificates of pods (KEP-4317). They are in memory only: an agent that starts again
// requests new ones, as upstream's does.
type certificates struct {
	mu  *sync.Mutex
	all map[certificateKey]*certificate
}

// certificateKey names a source of a projected volume.
type certificateKey struct {
	pod    types.UID
	volume string
	source int
}

// certificate is one source's. Its fields belong to the goroutine that mounts the pod.
type certificate struct {
	// key and chain are in PEM; nil before the first was issued.
	key, chain []byte
	// renewAt and notAfter are of the chain.
	renewAt, notAfter time.Time
	// asked is the request that waits for its signer, or nil.
	asked *request
	// refused is for good: the signer said no.
	refused error
	// toldOverdue and toldExpired: the events were sent.
	toldOverdue, toldExpired bool
}

// request is a key and its PodCertificateRequest, without a name before it is in the API.
type request struct {
	key, stub []byte
	name      string
}

func newCertificates() certificates {
	return certificates{mu: &sync.Mutex{}, all: map[certificateKey]*certificate{}}
}

func (c certificates) of(k certificateKey) *certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[k] == nil {
		c.all[k] = &certificate{}
	}
	return c.all[k]
}

func (c certificates) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.all {
		if k.pod == uid {
			delete(c.all, k)
		}
	}
}

// addCertificate writes a key and a certificate that a signer issued for the pod.
func (m *Manager) addCertificate(
	ctx context.Context,
	in Input,
	files map[string]file,
	k certificateKey,
	p *corev1.PodCertificateProjection,
	mode *int32,
) error {
	c := m.certificates.of(k)
	if err := m.renew(ctx, in.Pod, c, p); err != nil {
		return err
	}
	for path, data := range map[string][]byte{
		p.CredentialBundlePath: slices.Concat(c.key, c.chain), p.KeyPath: c.key, p.CertificateChainPath: c.chain,
	} {
		if path != "" {
			files[path] = privateFile(in.Pod, data, mode)
		}
	}
	return nil
}

// renew obtains the first certificate, which it waits for, and later ones, which it looks for each time. Who has a
// certificate keeps it until the next is issued.
func (m *Manager) renew(ctx context.Context, pod *corev1.Pod, c *certificate, p *corev1.PodCertificateProjection) error {
	if c.refused != nil {
		return c.refused
	}
	if c.chain != nil && time.Now().Before(c.renewAt) {
		return nil
	}
	m.warnOfAge(pod, c)
	if err := m.ask(ctx, pod, c, p); err != nil {
		return err
	}
	wait := issueTimeout
	if c.chain != nil {
		wait = 0
	}
	return m.collect(ctx, pod, c, wait)
}

// ask makes the request, unless one waits already.
func (m *Manager) ask(ctx context.Context, pod *corev1.Pod, c *certificate, p *corev1.PodCertificateProjection) error {
	if c.asked == nil {
		key, stub, err := keyAndProof(p.KeyType)
		if err != nil {
			return err
		}
		c.asked = &request{key: key, stub: stub}
	}
	if c.asked.name != "" {
		return nil
	}
	made, err := m.Objects.RequestCertificate(ctx, pod, p, c.asked.stub)
	if err != nil {
		return err
	}
	c.asked.name = made.Name
	return nil
}

// collect takes what the signer decided within wait.
func (m *Manager) collect(ctx context.Context, pod *corev1.Pod, c *certificate, wait time.Duration) error {
	name := pod.Namespace + "/" + c.asked.name
	got, err := m.Objects.CertificateRequest(ctx, pod.Namespace, c.asked.name, wait)
	if apierrors.IsNotFound(err) {
		c.asked = nil
		return fmt.Errorf("PodCertificateRequest %q appears to have been deleted", name)
	}
	if err != nil {
		return fmt.Errorf("while getting PodCertificateRequest %q: %w", name, err)
	}
	for _, cond := range got.Status.Conditions {
		switch cond.Type {
		case certificatesv1.PodCertificateRequestConditionTypeIssued:
			c.take(got)
			return nil
		case certificatesv1.PodCertificateRequestConditionTypeDenied, certificatesv1.PodCertificateRequestConditionTypeFailed:
			c.refused = fmt.Errorf("PodCertificateRequest %s was answered with %s, reason=%q, message=%q",
				name, cond.Type, cond.Reason, cond.Message)
			m.warn(pod, cond.Type, c.refused.Error())
			return c.refused
		}
	}
	if c.chain == nil {
		return fmt.Errorf("PodCertificateRequest %s is not issued yet", name)
	}
	return nil
}

// take makes the issued certificate the one in use.
func (c *certificate) take(got *certificatesv1.PodCertificateRequest) {
	var chain []byte
	for _, der := range blocks([]byte(got.Status.CertificateChain)) {
		chain = append(chain, certificatePEM(der)...)
	}
	*c = certificate{key: c.asked.key, chain: chain}
	if got.Status.BeginRefreshAt != nil {
		c.renewAt = got.Status.BeginRefreshAt.Add(rand.N(renewalJitterMax))
	}
	if got.Status.NotAfter != nil {
		c.notAfter = got.Status.NotAfter.Time
	}
}

// warnOfAge tells once that a renewal is overdue and once that it is too late.
func (m *Manager) warnOfAge(pod *corev1.Pod, c *certificate) {
	if c.chain == nil {
		return
	}
	now := time.Now()
	if !c.toldOverdue && now.After(c.renewAt.Add(renewalOverdue)) {
		c.toldOverdue = true
		m.warn(pod, "CertificateOverdueForRefresh", "PodCertificate refresh overdue")
	}
	if !c.toldExpired && now.After(c.notAfter) {
		c.toldExpired = true
		m.warn(pod, "CertificateExpired", "PodCertificate expired")
	}
}

func (m *Manager) warn(pod *corev1.Pod, reason, message string) {
	if m.Warn != nil {
		m.Warn(pod, reason, message)
	}
}
