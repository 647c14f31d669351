package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/simulated"
)

// summaryBytesMax bounds what a node may say that it uses: thousands of containers.
const summaryBytesMax = 2 << 20

var errSummaryTooLong = errors.New("the summary is too long")

// Summaries asks nodes what they use. It implements usage.Source.
type Summaries struct{ Kubelets *Kubelets }

// Summary is what a node's agent says or, for a simulated node, what its pods say by themselves.
func (s Summaries) Summary(ctx context.Context, node *corev1.Node, pods []*corev1.Pod) (*stats.Summary, error) {
	at, transport, err := s.Kubelets.Agent(node)
	if errors.Is(err, errNoAgent) {
		return simulated.Summary(node, pods, time.Now()), nil
	}
	if err != nil {
		return nil, err
	}
	at = at.JoinPath("stats", "summary")
	at.RawQuery = "only_cpu_and_memory=true"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request) // follows no redirects
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the agent answers %s", response.Status)
	}
	return readSummary(response.Body)
}

// readSummary takes no figure that is negative or no number: the whole answer cannot be believed then.
func readSummary(from io.Reader) (*stats.Summary, error) {
	text, err := io.ReadAll(io.LimitReader(from, summaryBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(text) > summaryBytesMax {
		return nil, errSummaryTooLong
	}
	summary := &stats.Summary{}
	if err := json.Unmarshal(text, summary); err != nil {
		return nil, fmt.Errorf("the summary: %w", err)
	}
	return summary, nil
}
