package setpoint_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
)

func Example() {
	ctx := context.Background()
	cluster, err := setpoint.Start(ctx, setpoint.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Stop()
	if err := cluster.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	config, err := cluster.RESTConfig()
	if err != nil {
		log.Fatal(err)
	}
	namespaces, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, namespace := range namespaces.Items {
		fmt.Println(namespace.Name)
	}
	// Output:
	// default
	// kube-node-lease
	// kube-public
	// kube-system
}
