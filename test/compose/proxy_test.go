//go:build compose

package compose

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
)

// TestServersReachPods: servers run no pods here and have no route to them. Each reaches pods through the agents of their
// nodes, by a Service and by name, also after the leader was killed.
func TestServersReachPods(t *testing.T) {
	c := connect(t)
	c.waitNodes(t)
	c.deploy(t, "reached", 3)
	pods, err := c.pods(t.Context(), "reached")
	if err != nil {
		t.Fatal(err)
	}
	c.expose(t, "reached", pods[0].Spec.NodeName)
	paths := []string{"/api/v1/namespaces/default/services/reached:8080/proxy/"}
	for _, pod := range pods {
		paths = append(paths, fmt.Sprintf("/api/v1/namespaces/default/pods/%s:8080/proxy/healthz", pod.Name))
	}
	for round := range kills(t) + 1 {
		for i, client := range c.clients {
			for _, path := range paths {
				eventually(t, time.Minute, func(ctx context.Context) string { return ask(ctx, client, path) })
			}
			t.Logf("round %d: server %d reaches a Service and %d pods", round, i+1, len(pods))
		}
		if round == kills(t) {
			return
		}
		leader, err := c.leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		victim, _, _ := strings.Cut(leader, "_")
		docker(t, "kill", victim)
		eventually(t, time.Minute, func(ctx context.Context) string {
			_, err := answer(ctx, c, func(client kubernetes.Interface) (struct{}, error) {
				if text := ask(ctx, client, paths[0]); text != "" {
					return struct{}{}, fmt.Errorf("without %s: %s", victim, text)
				}
				return struct{}{}, nil
			})
			if err != nil {
				return err.Error()
			}
			return ""
		})
		docker(t, "start", victim)
		c.waitServers(t)
	}
}

// ask says why a path is not answered, "" if it is.
func ask(ctx context.Context, client kubernetes.Interface, path string) string {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	if _, err := client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx); err != nil {
		return fmt.Sprintf("%s: %v", path, err)
	}
	return ""
}
