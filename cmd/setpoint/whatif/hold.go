package whatif

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hold notes what a manifest has brought that does nothing in a fork, whose loops for it do not run: autoscalers, CronJobs.
func (f *fork) hold(ctx context.Context) error {
	scalers, err := f.client.AutoscalingV2().HorizontalPodAutoscalers("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range scalers.Items {
		f.copied.autoscaler(&scalers.Items[i])
	}
	jobs, err := f.client.BatchV1().CronJobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range jobs.Items {
		f.copied.cronJob(&jobs.Items[i])
	}
	return nil
}

// clamped notes that an autoscaler would not leave an object with that many replicas.
func (a *act) clamped(target string, replicas int) {
	kind, name, _ := strings.Cut(strings.ToLower(target), "/")
	kind, _, _ = strings.Cut(strings.TrimSuffix(kind, "s"), ".")
	for _, scaler := range a.fork.copied.scaled {
		of, least, most := scaler.Spec.ScaleTargetRef, 1, int(scaler.Spec.MaxReplicas)
		if scaler.Spec.MinReplicas != nil {
			least = int(*scaler.Spec.MinReplicas)
		}
		its := scaler.Namespace == a.question.Namespace && of.Name == name && strings.HasPrefix(strings.ToLower(of.Kind), kind)
		if its && (replicas < least || replicas > most) {
			a.fork.copied.notes = append(a.fork.copied.notes, fmt.Sprintf(
				"the autoscaler %s/%s, which does nothing here, would bring %s back to %d to %d replicas",
				scaler.Namespace, scaler.Name, target, least, most))
		}
	}
}

// majority refuses a question that would take the control plane away: a fork has one of its own, which would go on.
func (f *fork) majority(lost []string) error {
	var gone []string
	for server, address := range f.copied.servers {
		for _, node := range lost {
			if f.copied.on(server, address, node) {
				gone = append(gone, server)
				break
			}
		}
	}
	voters := len(f.copied.servers)
	switch {
	case len(gone) == 0:
	case 2*(voters-len(gone)) <= voters:
		return impossible(fmt.Sprintf("%d of the %d servers run on these machines, and without a majority the control plane stands still: "+
			"pods that run go on, and nothing is moved, made or ended until it is back", len(gone), voters))
	default:
		f.copied.notes = append(f.copied.notes, fmt.Sprintf(
			"%d of the %d servers run on these machines too: the election of another leader, if it is one of them, takes time that is not counted", len(gone), voters))
	}
	return nil
}

// on says whether a server runs on the machine that is the node.
func (c *copying) on(server, address, node string) bool {
	if server == node {
		return true
	}
	for _, of := range c.addresses[node] {
		if of.Address == address && address != "" {
			return true
		}
	}
	return false
}
