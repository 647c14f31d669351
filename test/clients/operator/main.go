// Command operator is an operator as people write them with controller-runtime: two
// versions of a kind of its own, webhooks, leader election, a finalizer. The tests
// of this module run two of them.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// The times of the election: much shorter than the defaults (15, 10 and 2 s), so that
// the tests need not wait long for a leader that was killed.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

func main() {
	webhookPort := flag.Int("webhook-port", 9443, "port of the webhooks")
	certDir := flag.String("cert-dir", "", "folder with tls.crt and tls.key of the webhooks")
	metricsAddress := flag.String("metrics-address", ":8080", "where to serve metrics")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*webhookPort, *certDir, *metricsAddress); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run(webhookPort int, certDir, metricsAddress string) error {
	lease, renew, retry := leaseDuration, renewDeadline, retryPeriod
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                  newScheme(),
		LeaderElection:          true,
		LeaderElectionID:        "sites",
		LeaderElectionNamespace: registryNamespace,
		LeaseDuration:           &lease,
		RenewDeadline:           &renew,
		RetryPeriod:             &retry,
		Metrics:                 metricsserver.Options{BindAddress: metricsAddress},
		WebhookServer:           webhook.NewServer(webhook.Options{Port: webhookPort, CertDir: certDir}),
	})
	if err != nil {
		return err
	}
	if err := ctrl.NewWebhookManagedBy(manager, &Site{}).WithDefaulter(judge{}).WithValidator(judge{}).Complete(); err != nil {
		return err
	}
	r := &reconciler{Client: manager.GetClient(), events: manager.GetEventRecorder("sites")}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Site{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.sitesOfTheme)).
		Complete(r)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // the types of this program do not fit together
		}
	}
	return scheme
}
