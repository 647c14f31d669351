package userconfig

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	certificates "k8s.io/client-go/kubernetes/typed/certificates/v1"

	"github.com/setpoint-io/setpoint/internal/trust"
)

const (
	// signedPoll is how often it is looked whether a request was signed, deleteLimit bounds deleting it then.
	signedPoll  = 100 * time.Millisecond
	deleteLimit = 5 * time.Second
)

var errNotSigned = errors.New("the request was not signed")

type requests = certificates.CertificateSigningRequestInterface

// request is a key, which nobody else sees, and what asks for a certificate for it.
type request struct{ keyPEM, requestPEM []byte }

func newRequest(u *User) (*request, error) {
	keyPEM, err := trust.NewKey()
	if err != nil {
		return nil, err
	}
	requestPEM, err := trust.NewRequest(pkix.Name{CommonName: u.Name, Organization: u.Groups}, keyPEM)
	if err != nil {
		return nil, err
	}
	return &request{keyPEM, requestPEM}, nil
}

// byAPI asks, approves, and waits until the leader has signed, as long as ctx lasts. Nothing is left behind: the audit log has it.
func (r *request) byAPI(ctx context.Context, client kubernetes.Interface, u *User) (certPEM []byte, err error) {
	all := client.CertificatesV1().CertificateSigningRequests()
	csr, err := all.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "setpoint-kubeconfig-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: r.requestPEM, SignerName: certificatesv1.KubeAPIServerClientSignerName, ExpirationSeconds: new(int32(u.Life.Seconds())),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove(ctx, all, csr)) }()
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "SetpointKubeconfig",
		Message: "approved by who ran 'setpoint kubeconfig'",
	})
	if _, err := all.UpdateApproval(ctx, csr.Name, approved, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	return awaitSigned(ctx, all, csr.Name)
}

func remove(ctx context.Context, all requests, csr *certificatesv1.CertificateSigningRequest) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteLimit)
	defer cancel()
	return all.Delete(ctx, csr.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(csr.UID))})
}

func awaitSigned(ctx context.Context, all requests, name string) (certPEM []byte, err error) {
	err = wait.PollUntilContextCancel(ctx, signedPoll, true, func(ctx context.Context) (bool, error) {
		csr, err := all.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, c := range csr.Status.Conditions {
			if c.Type != certificatesv1.CertificateApproved {
				return false, fmt.Errorf("%w: %s: %s", errNotSigned, c.Reason, c.Message)
			}
		}
		certPEM = csr.Status.Certificate
		return len(certPEM) > 0, nil
	})
	if wait.Interrupted(err) {
		err = fmt.Errorf("%w in time: does a server lead?", errNotSigned)
	}
	return certPEM, err
}

// byAuthority signs with the CA's own key.
func (r *request) byAuthority(ca *trust.CA, u *User) ([]byte, error) {
	block, _ := pem.Decode(r.requestPEM)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return ca.Sign(parsed, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, x509.KeyUsageDigitalSignature, u.Life, time.Now())
}
