package certificates

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

// Signer makes certificates of the cluster's authority.
type Signer interface {
	// Sign certifies the request's key, subject and names for the usages, for life from now or
	// as long as the authority lives, and returns PEM.
	Sign(
		request *x509.CertificateRequest, usages []x509.ExtKeyUsage, keyUsage x509.KeyUsage, life time.Duration, now time.Time,
	) ([]byte, error)
}

var requests = reconcile.KindOf[*certificatesv1.CertificateSigningRequest](
	certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"),
)

// Authority is whose signatures the controller gives.
type Authority struct {
	// Signer signs what clients show; nil leaves all requests to others.
	Signer Signer
	// Serving signs what kubelets serve with: an authority that only servers trust.
	Serving Signer
	// NodeKey is the hash of the key that a node joined with (hex of SHA-256 over the DER
	// form of the public key); empty if it registered in another way.
	NodeKey func(node *corev1.Node) string
	// JudgeName refuses names that no node may have.
	JudgeName func(node string) error
	// Take counts a name for the bootstrap token with an id; why says that the token takes no more.
	Take func(ctx context.Context, tokenID, node string) (why string, err error)
	// Life is how long certificates are good at most, and if nothing shorter is asked for; zero: DefaultLife.
	Life time.Duration
}

// New answers requests.
func New(authority Authority) reconcile.Controller {
	return reconcile.Controller{
		Name:  "certificate-controller",
		Reads: []reconcile.Read{requests},
		Run:   func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, authority) },
	}
}

type controller struct {
	env *reconcile.Env
	Authority
	requests reconcile.Cache[*certificatesv1.CertificateSigningRequest]
}

func run(ctx context.Context, env *reconcile.Env, authority Authority) error {
	if authority.Signer == nil {
		return reconcile.Idle(ctx)
	}
	c := &controller{env, authority, requests.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "certificates",
		Queue:     "certificate",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Self(c.requests)},
		Env:       env,
	})
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	csr, err := c.requests.Get(key)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || len(csr.Status.Certificate) > 0 || has(csr, certificatesv1.CertificateDenied) ||
		has(csr, certificatesv1.CertificateFailed) {
		return 0, err
	}
	ctx = reconcile.WithCause(ctx, csr)
	if has(csr, certificatesv1.CertificateApproved) {
		err = c.sign(ctx, csr.DeepCopy())
	} else {
		err = c.approve(ctx, csr.DeepCopy())
	}
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, err
}

// answers are the conditions of requests.
var answers = conditions.Of(
	func(c *certificatesv1.CertificateSigningRequestCondition) (certificatesv1.RequestConditionType, corev1.ConditionStatus, *metav1.Time) {
		return c.Type, c.Status, &c.LastTransitionTime
	},
)

func has(csr *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return answers.Find(csr.Status.Conditions, kind) != nil
}

var errNoRequest = errors.New("it is no PEM block CERTIFICATE REQUEST")

func parse(csr *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errNoRequest
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return request, request.CheckSignature()
}

const (
	// DefaultLife is upstream's.
	DefaultLife = 365 * 24 * time.Hour
	// minLife is the shortest that anybody gets by asking for it.
	minLife = 10 * time.Minute
)

// sign certifies an approved request, or tells why it will not.
func (c *controller) sign(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	rule, ours := signers[csr.Spec.SignerName]
	if !ours {
		return nil
	}
	request, err := parse(csr)
	if err == nil {
		err = rule(request, csr.Spec.Usages)
	}
	if err == nil && csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName {
		err = c.JudgeName(strings.TrimPrefix(request.Subject.CommonName, nodePrefix))
	}
	if err != nil {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure", Message: err.Error(), LastUpdateTime: metav1.NewTime(c.env.Now()),
		})
	} else {
		extended, usage := usagesOf(csr.Spec.Usages)
		if csr.Status.Certificate, err = c.authority(csr.Spec.SignerName).Sign(request, extended, usage, c.lifeOf(csr), c.env.Now()); err != nil {
			return err
		}
	}
	_, err = c.env.Client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, csr, metav1.UpdateOptions{})
	return err
}

func (c *controller) authority(signer string) Signer {
	if signer == certificatesv1.KubeletServingSignerName {
		return c.Serving
	}
	return c.Signer
}

// lifeOf is as upstream's: Life may be shorter than what anybody may ask for.
func (a *Authority) lifeOf(csr *certificatesv1.CertificateSigningRequest) time.Duration {
	life := cmp.Or(a.Life, DefaultLife)
	if csr.Spec.ExpirationSeconds == nil {
		return life
	}
	return min(life, max(minLife, time.Duration(*csr.Spec.ExpirationSeconds)*time.Second))
}
