package certificates

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const (
	nodesGroup = "system:nodes"
	nodePrefix = "system:node:"
)

// reservedGroups are powers that no request gets: they stand for the cluster's own
// parts, which are certified when they are set up.
var reservedGroups = []string{"system:masters", "system:setpoint:servers", "setpoint:servers"}

var (
	errGroups = errors.New("subject organization is reserved")
	errNode   = errors.New(`subject organization is not ["system:nodes"] or common name does not begin with "system:node:"`)
	errNames  = errors.New("DNS, IP, email and URI names are not allowed")
	errServe  = errors.New("at least one DNS name or IP address is needed, and no email or URI names are allowed")
	errUsages = errors.New("usages do not match those of the signer")
)

// signers are the signers of this package, each with what it may sign.
var signers = map[string]func(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error{
	certificatesv1.KubeAPIServerClientSignerName: func(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
		return errors.Join(refuseReserved(request), requireUsages(usages, certificatesv1.UsageClientAuth))
	},
	certificatesv1.KubeAPIServerClientKubeletSignerName: judgeNodeClient,
	certificatesv1.KubeletServingSignerName: func(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
		var names error
		if len(request.DNSNames)+len(request.IPAddresses) == 0 || len(request.EmailAddresses)+len(request.URIs) > 0 {
			names = errServe
		}
		return errors.Join(requireNode(request), names, requireUsages(usages, certificatesv1.UsageServerAuth))
	},
}

// judgeNodeClient: the client certificate of a node bears its name and no others.
func judgeNodeClient(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	var names error
	if len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		names = errNames
	}
	return errors.Join(requireNode(request), names, requireUsages(usages, certificatesv1.UsageClientAuth))
}

func refuseReserved(request *x509.CertificateRequest) error {
	for _, group := range request.Subject.Organization {
		if slices.Contains(reservedGroups, group) {
			return fmt.Errorf("%w: %s", errGroups, group)
		}
	}
	return nil
}

func requireNode(request *x509.CertificateRequest) error {
	if !slices.Equal(request.Subject.Organization, []string{nodesGroup}) || !strings.HasPrefix(request.Subject.CommonName, nodePrefix) {
		return errNode
	}
	return nil
}

// requireUsages wants the one usage that the signer is for, beside those that every key needs.
func requireUsages(usages []certificatesv1.KeyUsage, wanted certificatesv1.KeyUsage) error {
	for _, u := range usages {
		if u != wanted && u != certificatesv1.UsageDigitalSignature && u != certificatesv1.UsageKeyEncipherment {
			return fmt.Errorf("%w: %s", errUsages, u)
		}
	}
	if !slices.Contains(usages, wanted) {
		return fmt.Errorf("%w: %s is missing", errUsages, wanted)
	}
	return nil
}

// usagesOf translates the usages that a signer allows.
func usagesOf(usages []certificatesv1.KeyUsage) (extended []x509.ExtKeyUsage, usage x509.KeyUsage) {
	for _, u := range usages {
		switch u {
		case certificatesv1.UsageDigitalSignature:
			usage |= x509.KeyUsageDigitalSignature
		case certificatesv1.UsageKeyEncipherment:
			usage |= x509.KeyUsageKeyEncipherment
		case certificatesv1.UsageClientAuth:
			extended = append(extended, x509.ExtKeyUsageClientAuth)
		case certificatesv1.UsageServerAuth:
			extended = append(extended, x509.ExtKeyUsageServerAuth)
		}
	}
	return extended, usage
}
