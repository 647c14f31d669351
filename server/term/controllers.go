package term

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/certificates"
	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/scheduler"
	"github.com/setpoint-io/setpoint/internal/servicerange"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
	"github.com/setpoint-io/setpoint/internal/trust/kubeconfigs"
	"github.com/setpoint-io/setpoint/server/inprocess"
	"github.com/setpoint-io/setpoint/server/loops"
	"github.com/setpoint-io/setpoint/server/monitors"
)

// runControllers begins anew when other authorities are believed, since controllers publish them.
func (c *Config) runControllers(ctx context.Context, term uint64, pods podnetwork.Network) error {
	for {
		replaced := c.Trust.CA.Replaced()
		running, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		var watching sync.WaitGroup
		watching.Go(func() {
			select {
			case <-replaced:
				cancel()
			case <-stop:
			}
		})
		err := c.controllersOnce(running, term, pods)
		close(stop)
		watching.Wait()
		again := running.Err() != nil && ctx.Err() == nil
		cancel()
		if !again {
			return err
		}
		c.Logger.Info("the controllers begin anew: they publish other certificate authorities")
	}
}

func (c *Config) controllersOnce(ctx context.Context, term uint64, pods podnetwork.Network) error {
	config := c.Door.Config(inprocess.Controllers, term)
	config.Transport = loops.Tap{Next: config.Transport, Actions: c.Parts.Controllers.Actions}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	extensions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	aggregatorClient, err := aggregator.NewForConfig(config)
	if err != nil {
		return err
	}
	clusterInfo, err := kubeconfigs.ClusterInfo(c.Trust.CA.CertPEM(), c.Self.Endpoint)
	if err != nil {
		return err
	}
	followed := monitors.New(ctx, monitors.Config{
		Storage: c.Storage, Caches: c.Caches, Custom: c.Custom, Remotes: c.Aggregation,
		Client: metadataClient, Logger: c.Logger,
	})
	defer followed.Wait()
	settings := c.Settings
	settings.PodNetwork = pods
	return controllers.Run(ctx, reconcile.Env{
		Client: client, Extensions: extensions, Aggregator: aggregatorClient, Metadata: metadataClient, Discovery: discoveryClient, REST: config,
		Caches: c.Caches, Numbers: c.Numbers, Pace: c.Pace, Clock: c.Clock, Logger: c.Parts.Controllers.Logger,
	}, controllers.Config{
		Settings:    settings,
		APIOnly:     c.APIOnly,
		Only:        c.Loops,
		LocalAPIs:   localAPIs(c.Offered),
		Prober:      c.Aggregation,
		Monitors:    followed.All,
		Liveness:    c.Liveness,
		RootCA:      c.Trust.CA.CertPEM(),
		ClusterInfo: clusterInfo,
		Objects:     c.clusterObjects(servicerange.Texts(pods.Services, pods.Services6)),
		Authority: certificates.Authority{
			Signer: c.Trust.CA, Serving: c.NodeServing, Life: c.SigningDuration,
			NodeKey:   func(node *corev1.Node) string { return node.Annotations[trust.NodeKeyAnnotation] },
			JudgeName: func(node string) error { return trust.JudgeNodeName(node, c.NamesOfServers()) },
			Take:      func(ctx context.Context, token, node string) (string, error) { return take(ctx, client, token, node) },
		},
		Tokens: c.Tokens,
		Begun:  func() { c.Numbers.BeginTerm(term) },
	})
}

// take is jointoken.Take, whose refusal is no error.
func take(ctx context.Context, client kubernetes.Interface, token, node string) (why string, err error) {
	if err = jointoken.Take(ctx, client, token, node); errors.Is(err, join.ErrNoMoreNames) {
		return err.Error(), nil
	}
	return "", err
}

func (c *Config) runScheduler(ctx context.Context, term uint64) error {
	config := c.Door.Config(inprocess.Scheduler, term)
	config.Transport = loops.Tap{Next: config.Transport, Actions: c.Parts.Scheduler.Actions}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return scheduler.Run(ctx, scheduler.Config{
		Client: client, Binder: c.binder(client, term),
		Informers: c.Caches, Serves: c.Storage.Serves, Profiles: c.Scheduling, Numbers: c.Numbers, Pace: c.Pace, Clock: c.Clock,
		Logger: c.Parts.Scheduler.Logger,
	})
}

// binder binds without HTTP, unless somebody wants to see the requests.
func (c *Config) binder(client kubernetes.Interface, term uint64) scheduler.Binder {
	if c.Door.Intercepted() {
		return scheduler.ClientBinder{Client: client}
	}
	return loops.BindTap{Next: c.Door.Binder(term), Actions: c.Parts.Scheduler.Actions}
}
