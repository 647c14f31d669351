package nodestatus

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

const (
	// summariesParallelMax is how many nodes are asked at once for what they use, each for summaryTimeout at most.
	summariesParallelMax = 16
	summaryTimeout       = 3 * time.Second
	// summaryBytesMax bounds what one node may say that it uses.
	summaryBytesMax = 8 << 20
)

var errSummaryTooLong = errors.New("its summary is too long")

// Fetch reads the objects of one named node, or of all, and then asks the nodes themselves.
func Fetch(ctx context.Context, client kubernetes.Interface, names []string) ([]Report, error) {
	all, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	nodes, err := namedNodes(all.Items, names)
	if err != nil {
		return nil, err
	}
	placed := fields.OneTermNotEqualSelector("spec.nodeName", "")
	if len(names) == 1 {
		placed = fields.OneTermEqualSelector("spec.nodeName", names[0])
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: placed.String()})
	if err != nil {
		return nil, err
	}
	of := map[string][]corev1.Pod{}
	for _, pod := range pods.Items {
		of[pod.Spec.NodeName] = append(of[pod.Spec.NodeName], pod)
	}
	reports := make([]Report, len(nodes))
	var asking errgroup.Group
	asking.SetLimit(summariesParallelMax)
	for i, node := range nodes {
		asking.Go(func() error {
			summary, err := fetchSummary(ctx, client, node.Name)
			reports[i] = reportNode(&node, of[node.Name], summary)
			if len(names) == 1 {
				reports[i].Others = othersOf(&node, all.Items)
			}
			if err != nil {
				reports[i].Error = err.Error()
			}
			return nil
		})
	}
	return reports, asking.Wait()
}

// namedNodes are those that are asked for: one, or all.
func namedNodes(all []corev1.Node, names []string) ([]corev1.Node, error) {
	if len(names) == 0 {
		return all, nil
	}
	i := slices.IndexFunc(all, func(n corev1.Node) bool { return n.Name == names[0] })
	if i < 0 {
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), names[0])
	}
	return all[i : i+1], nil
}

// fetchSummary returns an empty one with an error.
func fetchSummary(ctx context.Context, client kubernetes.Interface, node string) (*stats.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	summary := &stats.Summary{}
	body, err := client.CoreV1().RESTClient().Get().
		Resource("nodes").Name(node).SubResource("proxy").Suffix("stats", "summary").Stream(ctx)
	if err != nil {
		return summary, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, summaryBytesMax+1))
	if err != nil {
		return summary, err
	}
	if len(text) > summaryBytesMax {
		return summary, errSummaryTooLong
	}
	if err := json.Unmarshal(text, summary); err != nil {
		return &stats.Summary{}, err
	}
	return summary, nil
}
