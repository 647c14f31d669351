package profile

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// notSupported is the error for a field that Kubernetes knows and Setpoint does not honour.
func notSupported(path *field.Path, why string) error {
	return fmt.Errorf("%s: not supported: %s", path, why)
}

// Why whole parts of the file mean nothing here.
const (
	elected  = "the server that leads the cluster schedules; remove it"
	within   = "the scheduler is part of the server, and calls no API over the network; remove it"
	profiled = "profiling is not a matter of the scheduler"
)

// refuse refuses what means nothing here, outside of the profiles.
func refuse(in *configv1.KubeSchedulerConfiguration) error {
	if len(in.Extenders) > 0 {
		return notSupported(field.NewPath("extenders").Index(0), "the scheduler calls no other programs")
	}
	election, client := &in.LeaderElection, &in.ClientConnection
	ofElection, ofClient := field.NewPath("leaderElection").Child, field.NewPath("clientConnection").Child
	for _, f := range []struct {
		set  bool
		path *field.Path
		why  string
	}{
		{in.Parallelism != nil, field.NewPath("parallelism"), "one pod is placed at a time; what plugins say of a node is kept for pods like it"},
		{in.DelayCacheUntilActive, field.NewPath("delayCacheUntilActive"), "every server has its caches filled"},
		{in.EnableProfiling != nil, field.NewPath("enableProfiling"), profiled},
		{in.EnableContentionProfiling != nil, field.NewPath("enableContentionProfiling"), profiled},
		{election.LeaderElect != nil && !*election.LeaderElect, ofElection("leaderElect"), elected},
		{election.LeaseDuration.Duration != 0, ofElection("leaseDuration"), elected},
		{election.RenewDeadline.Duration != 0, ofElection("renewDeadline"), elected},
		{election.RetryPeriod.Duration != 0, ofElection("retryPeriod"), elected},
		{election.ResourceLock != "", ofElection("resourceLock"), elected},
		{election.ResourceName != "", ofElection("resourceName"), elected},
		{election.ResourceNamespace != "", ofElection("resourceNamespace"), elected},
		{client.Kubeconfig != "", ofClient("kubeconfig"), within},
		{client.AcceptContentTypes != "", ofClient("acceptContentTypes"), within},
		{client.ContentType != "", ofClient("contentType"), within},
		{client.QPS != 0, ofClient("qps"), within},
		{client.Burst != 0, ofClient("burst"), within},
	} {
		if f.set {
			return notSupported(f.path, f.why)
		}
	}
	return checkPercent(field.NewPath("percentageOfNodesToScore"), in.PercentageOfNodesToScore)
}
