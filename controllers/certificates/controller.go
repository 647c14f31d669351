package certificates

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Signer makes certificates of the cluster's authority.
type Signer interface {
	// Sign certifies the request's key, subject and names for the usages, for life or
	// as long as the authority lives, and returns PEM.
	Sign(request *x509.CertificateRequest, usages []x509.ExtKeyUsage, keyUsage x509.KeyUsage, life time.Duration) ([]byte, error)
}

// Config is what the controller needs for one term.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Signer    Signer
	Logger    *slog.Logger
}

type controller struct{ cfg Config }

// Warm creates the informers that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	f.Certificates().V1().CertificateSigningRequests().Informer()
	return nil
}

// Run answers requests until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	c := &controller{cfg}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "certificates",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Self(cfg.Informers.Certificates().V1().CertificateSigningRequests().Informer())},
		Logger:    cfg.Logger,
	})
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	csr, err := c.cfg.Informers.Certificates().V1().CertificateSigningRequests().Lister().Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || len(csr.Status.Certificate) > 0 || has(csr, certificatesv1.CertificateDenied) || has(csr, certificatesv1.CertificateFailed) {
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

func has(csr *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
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
	// defaultLife is that of a certificate for which nothing shorter is asked, and the longest.
	defaultLife = 365 * 24 * time.Hour
	minLife     = 10 * time.Minute
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
	if err != nil {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure", Message: err.Error(), LastUpdateTime: metav1.Now(),
		})
	} else {
		extended, usage := usagesOf(csr.Spec.Usages)
		if csr.Status.Certificate, err = c.cfg.Signer.Sign(request, extended, usage, lifeOf(csr)); err != nil {
			return err
		}
	}
	_, err = c.cfg.Client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, csr, metav1.UpdateOptions{})
	return err
}

func lifeOf(csr *certificatesv1.CertificateSigningRequest) time.Duration {
	if csr.Spec.ExpirationSeconds == nil {
		return defaultLife
	}
	return max(minLife, min(defaultLife, time.Duration(*csr.Spec.ExpirationSeconds)*time.Second))
}
