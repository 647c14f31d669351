package jointoken

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
)

// TestKubeconfigOfAKubelet: a client that reads it goes where cluster-info says, with the bootstrap token.
func TestKubeconfigOfAKubelet(t *testing.T) {
	token := newToken(t)
	const info = "apiVersion: v1\nkind: Config\nclusters:\n- name: ''\n  cluster: {server: 'https://balancer:6443', certificate-authority-data: Q0E=}\n"
	for name, c := range map[string]struct {
		data map[string]string
		want string // in the error
	}{
		"as published":  {map[string]string{"kubeconfig": info}, ""},
		"not published": {nil, "kube-public/cluster-info"},
		"spoiled":       {map[string]string{"kubeconfig": "{"}, "kube-public/cluster-info"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if c.data != nil {
				client = fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: c.data})
			}
			text, err := Kubeconfig(t.Context(), client, &Token{Token: token.Text()})
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.RESTConfigFromKubeConfig(text)
			if err != nil {
				t.Fatal(err)
			}
			if want := token.ID() + "." + token.Key(); config.Host != "https://balancer:6443" || config.BearerToken != want || string(config.CAData) != "CA" {
				t.Errorf("host %s, CA %s, or another token", config.Host, config.CAData)
			}
		})
	}
}
