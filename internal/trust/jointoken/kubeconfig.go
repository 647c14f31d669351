package jointoken

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// kubeletUser names user and context in a kubelet's first kubeconfig, as kubeadm does.
const kubeletUser = "tls-bootstrap-token-user"

var errNoClusterInfo = errors.New("the ConfigMap kube-public/cluster-info does not say where the cluster is: it comes back within a minute after it is deleted")

// Kubeconfig is the file for --bootstrap-kubeconfig of a stock kubelet: where the cluster is, as kube-public/cluster-info
// says, and the bootstrap token of a token that Create made. It is a secret.
func Kubeconfig(ctx context.Context, client kubernetes.Interface, made *Token) ([]byte, error) {
	token, err := tokens.Parse(made.Token)
	if err != nil {
		return nil, err
	}
	info, err := client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	config, err := clientcmd.Load([]byte(info.Data[bootstrapapi.KubeConfigKey]))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoClusterInfo, err)
	}
	if len(config.Clusters) != 1 {
		return nil, errNoClusterInfo
	}
	for name := range config.Clusters {
		config.Contexts = map[string]*clientcmdapi.Context{kubeletUser: {Cluster: name, AuthInfo: kubeletUser}}
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{kubeletUser: {Token: token.ID() + "." + token.Key()}}
	config.CurrentContext = kubeletUser
	return clientcmd.Write(*config)
}
