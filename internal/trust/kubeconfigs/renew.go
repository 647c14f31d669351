package kubeconfigs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// Renewed returns a kubeconfig with other credentials for the users whose certificate isUser knows, and with the authorities of now where a
// cluster has believed some of them. It returns nil if everything is right already.
func Renewed(text []byte, isUser func(*x509.Certificate) bool, c Credentials) ([]byte, error) {
	var config clientcmdv1.Config
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	changed := replaceAuthorities(&config, c.CAPEM)
	for i := range config.AuthInfos {
		user := &config.AuthInfos[i].AuthInfo
		own := certificates(user.ClientCertificateData)
		if len(own) > 0 && isUser(own[0]) && !bytes.Equal(user.ClientCertificateData, c.CertPEM) {
			user.ClientCertificateData, user.ClientKeyData = c.CertPEM, c.KeyPEM
			changed = true
		}
	}
	if !changed {
		return nil, nil
	}
	return yaml.Marshal(config)
}

// replaceAuthorities makes the clusters of a kubeconfig believe exactly the authorities in caPEM, if they have believed one of them before,
// and reports whether that changes something. Other clusters are somebody else's.
func replaceAuthorities(config *clientcmdv1.Config, caPEM []byte) (changed bool) {
	ours := certificates(caPEM)
	for i := range config.Clusters {
		cluster := &config.Clusters[i].Cluster
		if bytes.Equal(cluster.CertificateAuthorityData, caPEM) {
			continue
		}
		for _, theirs := range certificates(cluster.CertificateAuthorityData) {
			if slices.ContainsFunc(ours, theirs.Equal) {
				cluster.CertificateAuthorityData, changed = caPEM, true
				break
			}
		}
	}
	return changed
}

// certificates are those of a text in PEM, none if one of them cannot be read.
func certificates(text []byte) (all []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		all = append(all, certificate)
	}
	return all
}
