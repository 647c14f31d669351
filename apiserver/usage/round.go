package usage

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// round asks each node once. Those that answered the last time come first: others may keep a worker waiting. It
// ends in time for the next one, and who was not asked by then has to wait.
func (m *Meter) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, roundInterval)
	defer cancel()
	nodes, bound, err := m.cluster(ctx)
	if err != nil {
		m.config.Logger.Warn("usage cannot be measured", "err", err)
		return
	}
	m.keep(nodes)
	next := make(chan *corev1.Node)
	var workers sync.WaitGroup
	for range min(questionsAtOnce, len(nodes)) {
		workers.Go(func() {
			for node := range next {
				m.ask(ctx, node, bound[node.Name])
			}
		})
	}
	for _, node := range m.inOrder(nodes) {
		next <- node // a question ends with ctx, so there is soon a worker
	}
	close(next)
	workers.Wait()
}

// cluster is what this replica knows of the nodes, and of the pods by their node.
func (m *Meter) cluster(ctx context.Context) ([]*corev1.Node, map[string][]*corev1.Pod, error) {
	var nodes []*corev1.Node
	snapshot, err := m.nodes.Snapshot(ctx, "0")
	if err != nil {
		return nil, nil, err
	}
	for object, err := range snapshot.All("") {
		if err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, object.(*corev1.Node))
	}
	bound := map[string][]*corev1.Pod{}
	snapshot, err = m.pods.Snapshot(ctx, "0")
	if err != nil {
		return nil, nil, err
	}
	for object, err := range snapshot.All("") {
		if err != nil {
			return nil, nil, err
		}
		pod := object.(*corev1.Pod)
		if running(pod) {
			bound[pod.Spec.NodeName] = append(bound[pod.Spec.NodeName], pod)
		}
	}
	return nodes, bound, nil
}

// running are the pods that have metrics.
func running(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning
}

// keep forgets the nodes that are gone.
func (m *Meter) keep(nodes []*corev1.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := make(map[string]*nodeUsage, len(nodes))
	for _, node := range nodes {
		if u := m.known[node.Name]; u != nil && u.uid == node.UID {
			known[node.Name] = u
		}
	}
	m.known = known
}

func (m *Meter) inOrder(nodes []*corev1.Node) []*corev1.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	silent := func(node *corev1.Node) int {
		if u := m.known[node.Name]; u == nil || u.failed {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(nodes), func(a, b *corev1.Node) int { return silent(a) - silent(b) })
}

// ask asks one node and takes its answer in.
func (m *Meter) ask(ctx context.Context, node *corev1.Node, pods []*corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	summary, err := m.config.Source.Summary(ctx, node, pods)
	now := time.Now()
	var said answer
	if err == nil {
		said, err = accept(summary, node, pods, now)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.known[node.Name]
	if err != nil {
		m.config.Logger.Debug("a node does not tell what it uses", "node", node.Name, "err", err)
		if last != nil {
			last.failed = true
		}
		return
	}
	m.known[node.Name] = last.after(node.UID, said, now)
}
