package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

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

// LinkKubeconfig makes dataDir/name a link to trustDir/name, so that who looks for this machine's access in the data
// directory finds that of a trust folder elsewhere. It replaces a link to another folder and leaves a file alone.
func LinkKubeconfig(dataDir, trustDir, name string) error {
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
