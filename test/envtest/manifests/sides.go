package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	startTimeout = 3 * time.Minute
	// answerMax bounds an answer that is read, busyTries how often a server that is busy is asked again.
	answerMax = 16 << 20
	busyTries = 20
	busyPause = 500 * time.Millisecond
	// serviceNetwork is what ours has by default; upstream's is told.
	serviceNetwork = "10.96.0.0/16"
)

// side is one of the two API servers.
type side struct {
	config *rest.Config
	client *http.Client
}

// answer is what one of them says.
type answer struct {
	code     int
	warnings []string
	object   map[string]any
}

// startSides starts upstream's server and ours, as envtest does.
func startSides(assets ...string) (sides []*side, stop func(), err error) {
	var started []*envtest.Environment
	stop = func() {
		for _, e := range started {
			_ = e.Stop() // they are processes in folders of their own
		}
	}
	for i, folder := range assets {
		e := &envtest.Environment{BinaryAssetsDirectory: folder, ControlPlaneStartTimeout: startTimeout}
		if i == 0 {
			e.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", serviceNetwork)
		}
		config, err := e.Start()
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("%s: %w", folder, err)
		}
		started = append(started, e)
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			stop()
			return nil, nil, err
		}
		sides = append(sides, &side{config, client})
	}
	return sides, stop, nil
}

// do sends a request, again while the server says that it is busy.
func (s *side) do(method, path string, body []byte) answer {
	for try := 0; ; try++ {
		a := s.ask(method, path, body)
		if a.code != http.StatusTooManyRequests || try == busyTries {
			return a
		}
		time.Sleep(busyPause)
	}
}

func (s *side) ask(method, path string, body []byte) answer {
	request, err := http.NewRequest(method, strings.TrimRight(s.config.Host, "/")+path, bytes.NewReader(body))
	if err != nil {
		return answer{object: map[string]any{"error": err.Error()}}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return answer{object: map[string]any{"error": err.Error()}}
	}
	defer response.Body.Close()
	a := answer{code: response.StatusCode, warnings: response.Header.Values("Warning")}
	text, _ := io.ReadAll(io.LimitReader(response.Body, answerMax))
	if json.Unmarshal(text, &a.object) != nil {
		a.object = map[string]any{"text": string(text)}
	}
	return a
}

// place is where the objects of a kind are.
type place struct {
	plural     string
	namespaced bool
}

// served are the kinds of a side.
type served map[schema.GroupVersionKind]place

func (s *side) kinds() served {
	kinds := served{}
	client, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		return kinds
	}
	_, lists, _ := client.ServerGroupsAndResources() // what a missing aggregated server has is left out
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				kinds[gv.WithKind(r.Kind)] = place{r.Name, r.Namespaced}
			}
		}
	}
	return kinds
}

// path is where objects of a kind are created.
func (k served) path(gvk schema.GroupVersionKind, namespace string) string {
	path := "/apis/" + gvk.Group + "/" + gvk.Version
	if gvk.Group == "" {
		path = "/api/" + gvk.Version
	}
	if kind := k[gvk]; kind.namespaced {
		return path + "/namespaces/" + namespace + "/" + kind.plural
	}
	return path + "/" + k[gvk].plural
}
