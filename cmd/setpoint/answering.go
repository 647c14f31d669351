package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// answerTimeout bounds asking servers whether they are ready.
	answerTimeout = 2 * time.Second
	// headStart is how long the server of the current context may take before the others are asked too: one that is there answers
	// within milliseconds, one whose machine is off never.
	headStart = 200 * time.Millisecond
)

// answeringServer finds another server of the cluster when the one of the current context is not ready: one of the
// kubeconfig's other contexts that has the same authority and user. It returns nil if there is no need or no such
// server, and if the user has chosen a server himself.
func answeringServer(flags *genericclioptions.ConfigFlags, out io.Writer) *rest.Config {
	if *flags.Context != "" || *flags.ClusterName != "" || *flags.APIServer != "" || *flags.AuthInfoName != "" {
		return nil
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil // kubectl says so itself
	}
	others := alike(&raw)
	if len(others) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	name, config := firstReady(raw.CurrentContext, others, func(name string) (*rest.Config, bool) { return ready(ctx, &raw, name) })
	if config == nil || name == raw.CurrentContext {
		return nil
	}
	fmt.Fprintf(out, "%s does not answer: using %s\n", raw.CurrentContext, name)
	return config
}

// firstReady is the first server that is ready: the current one is asked before the others, which are asked all at once when it is not
// ready or takes longer than headStart. ask returns nil for one that does not answer, and must end. One that refuses this user may have
// just started, and not have read yet who may do what: it is used if no other is ready, so that he is told why. Without any the name is "".
func firstReady(current string, others []string, ask func(name string) (config *rest.Config, refuses bool)) (string, *rest.Config) {
	type answer struct {
		name    string
		config  *rest.Config
		refuses bool
	}
	var refusing answer
	answers := make(chan answer, 1+len(others))
	start := func(names []string) {
		for _, name := range names {
			go func() {
				config, refuses := ask(name)
				answers <- answer{name, config, refuses}
			}()
		}
	}
	start([]string{current})
	late := time.NewTimer(headStart)
	defer late.Stop()
	for waiting := 1; waiting > 0; {
		select {
		case a := <-answers:
			waiting--
			if a.config != nil && !a.refuses {
				return a.name, a.config
			}
			if a.config != nil && (refusing.config == nil || a.name == current) {
				refusing = a
			}
		case <-late.C:
		}
		start(others)
		waiting, others = waiting+len(others), nil
	}
	return refusing.name, refusing.config
}

// alike are the names of the other contexts that lead to the cluster of the current one as the same user, sorted.
func alike(raw *clientcmdapi.Config) []string {
	current := raw.Contexts[raw.CurrentContext]
	if current == nil || raw.Clusters[current.Cluster] == nil {
		return nil
	}
	authority := raw.Clusters[current.Cluster].CertificateAuthorityData
	var names []string
	for _, name := range slices.Sorted(maps.Keys(raw.Contexts)) {
		c := raw.Contexts[name]
		cluster := raw.Clusters[c.Cluster]
		if name != raw.CurrentContext && c.AuthInfo == current.AuthInfo && cluster != nil &&
			len(authority) > 0 && bytes.Equal(cluster.CertificateAuthorityData, authority) {
			names = append(names, name)
		}
	}
	return names
}

// ready is how to reach the server of a context that is ready, or refuses this user; nil if it does not answer, or is not ready.
func ready(ctx context.Context, raw *clientcmdapi.Config, name string) (config *rest.Config, refuses bool) {
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, nil, nil).ClientConfig()
	if err != nil {
		return nil, false
	}
	switch askReady(ctx, config) {
	case http.StatusOK:
		return config, false
	case http.StatusUnauthorized, http.StatusForbidden:
		return config, true
	}
	return nil, false
}

// askReady is the status with which a server says whether it is ready, 0 without an answer.
func askReady(ctx context.Context, config *rest.Config) (code int) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/readyz", nil)
	if err != nil {
		return 0
	}
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}
