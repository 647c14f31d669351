package pki

import (
	"fmt"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// Kubeconfig returns a kubeconfig with one cluster and one context for each server, named
// after it; the first is current. Certificates and key are embedded: it is a secret.
func Kubeconfig(user *Identity, servers []Server) ([]byte, error) {
	if len(servers) == 0 {
		return nil, fmt.Errorf("kubeconfig: %w: none given", ErrBadServer)
	}
	config := clientcmdv1.Config{
		Kind: "Config", APIVersion: "v1",
		CurrentContext: servers[0].Name,
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: adminName, AuthInfo: clientcmdv1.AuthInfo{
			ClientCertificateData: user.CertPEM, ClientKeyData: user.KeyPEM,
		}}},
	}
	for _, server := range servers {
		config.Clusters = append(config.Clusters, clientcmdv1.NamedCluster{Name: server.Name, Cluster: clientcmdv1.Cluster{
			Server: "https://" + server.Endpoint, CertificateAuthorityData: user.CAPEM,
		}})
		config.Contexts = append(config.Contexts, clientcmdv1.NamedContext{Name: server.Name, Context: clientcmdv1.Context{
			Cluster: server.Name, AuthInfo: adminName,
		}})
	}
	return yaml.Marshal(config)
}

// ClusterInfo returns a kubeconfig without a user, which tells machines where the cluster
// is and whom to trust there: kubeadm's form, one cluster without a name.
func ClusterInfo(ca *CA, server Server) ([]byte, error) {
	return yaml.Marshal(clientcmdv1.Config{
		Kind: "Config", APIVersion: "v1",
		Clusters: []clientcmdv1.NamedCluster{{Cluster: clientcmdv1.Cluster{
			Server: "https://" + server.Endpoint, CertificateAuthorityData: ca.CertPEM(),
		}}},
	})
}

// WriteKubeconfig writes Kubeconfig's result to a file with mode 0600.
func WriteKubeconfig(path string, user *Identity, servers []Server) error {
	content, err := Kubeconfig(user, servers)
	if err != nil {
		return err
	}
	return writeFile(path, content, secretMode)
}
