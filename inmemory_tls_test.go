package setpoint_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint"
)

// TestClientsOfAForkThatIsAhead go by the process's time, and the fork's server has made its certificate in the cluster's.
func TestClientsOfAForkThatIsAhead(t *testing.T) {
	c, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, APIOnly: true})
	ready(t, c, err)
	if err := c.Jump(t.Context(), 300*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := c.Advance(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	f, err := c.Fork(t.Context())
	ready(t, f, err)
	kubeconfig, err := f.Listen()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceDefault, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
