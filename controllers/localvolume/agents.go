package localvolume

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/localvolume"
)

// Agents are those of the nodes.
type Agents interface {
	// Make makes a volume on a node, or enlarges it.
	Make(ctx context.Context, node, handle string, want localvolume.Volume) (localvolume.Volume, error)
	// Remove deletes a volume and its data; with onlyEmpty one with data stays.
	Remove(ctx context.Context, node, handle string, onlyEmpty bool) error
	// List are the handles of a node's volumes.
	List(ctx context.Context, node string) ([]string, error)
}

const (
	// agentTimeout bounds one call; deleting much data takes longer, and goes on meanwhile.
	agentTimeout = 15 * time.Second
	// answerMax bounds what an error of an agent may say in an event.
	answerMax = 300
)

// proxied asks agents through the API's node proxy.
type proxied struct{ client kubernetes.Interface }

func (p proxied) Make(ctx context.Context, node, handle string, want localvolume.Volume) (localvolume.Volume, error) {
	body, err := json.Marshal(want)
	if err != nil {
		return want, err
	}
	request := p.call(http.MethodPut, node, localvolume.Endpoint, handle).SetHeader("Content-Type", "application/json").Body(body)
	return want, answer(ctx, node, request, &want)
}

func (p proxied) Remove(ctx context.Context, node, handle string, onlyEmpty bool) error {
	request := p.call(http.MethodDelete, node, localvolume.Endpoint, handle)
	if onlyEmpty {
		request = request.Param(localvolume.OnlyEmpty, "true")
	}
	return answer(ctx, node, request, &struct{}{})
}

func (p proxied) List(ctx context.Context, node string) ([]string, error) {
	var list localvolume.List
	err := answer(ctx, node, p.call(http.MethodGet, node, localvolume.Endpoint), &list)
	return list.Handles, err
}

func (p proxied) call(method, node string, path ...string) *rest.Request {
	return p.client.CoreV1().RESTClient().Verb(method).Resource("nodes").Name(node).SubResource("proxy").Suffix(path...)
}

func answer(ctx context.Context, node string, request *rest.Request, into any) error {
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	body, err := request.Do(ctx).Raw()
	if err != nil {
		said := string(body[:min(len(body), answerMax)])
		return fmt.Errorf("agent of node %s: %w %s", node, err, said)
	}
	return json.Unmarshal(body, into)
}
