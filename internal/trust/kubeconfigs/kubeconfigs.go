package kubeconfigs

import (
	"errors"
	"os"
	"path/filepath"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// Credentials are a user's certificate and key, and the authorities that he believes, in PEM.
type Credentials struct{ CertPEM, KeyPEM, CAPEM []byte }

// Server is a server by its name and host:port.
type Server struct{ Name, Endpoint string }

// New returns a kubeconfig with one cluster and one context for each server, named
// after it; the first is current. Certificates and key are embedded: it is a secret.
func New(user string, c Credentials, servers []Server) ([]byte, error) {
	config := clientcmdv1.Config{
		Kind: "Config", APIVersion: "v1",
		CurrentContext: servers[0].Name,
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: user, AuthInfo: clientcmdv1.AuthInfo{
			ClientCertificateData: c.CertPEM, ClientKeyData: c.KeyPEM,
		}}},
	}
	for _, server := range servers {
		config.Clusters = append(config.Clusters, clientcmdv1.NamedCluster{Name: server.Name, Cluster: clientcmdv1.Cluster{
			Server: "https://" + server.Endpoint, CertificateAuthorityData: c.CAPEM,
		}})
		config.Contexts = append(config.Contexts, clientcmdv1.NamedContext{Name: server.Name, Context: clientcmdv1.Context{
			Cluster: server.Name, AuthInfo: user,
		}})
	}
	return yaml.Marshal(config)
}

// ClusterInfo returns a kubeconfig without a user, which tells machines where the cluster
// is and whom to trust there: kubeadm's form, one cluster without a name.
func ClusterInfo(caPEM []byte, endpoint string) ([]byte, error) {
	return yaml.Marshal(clientcmdv1.Config{
		Kind: "Config", APIVersion: "v1",
		Clusters: []clientcmdv1.NamedCluster{{Cluster: clientcmdv1.Cluster{
			Server: "https://" + endpoint, CertificateAuthorityData: caPEM,
		}}},
	})
}

// Link makes dataDir/name a link to trustDir/name, so that who looks for this machine's access in the data
// directory finds that of a trust folder elsewhere. It replaces a link to another folder and leaves a file alone.
func Link(dataDir, trustDir, name string) error {
	own := filepath.Join(dataDir, name)
	shared, err := filepath.Abs(filepath.Join(trustDir, name))
	if err != nil || filepath.Clean(trustDir) == filepath.Clean(dataDir) {
		return err
	}
	if linked, err := os.Readlink(own); err == nil && linked != shared {
		if err := os.Remove(own); err != nil {
			return err
		}
	}
	if err := os.Symlink(shared, own); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
