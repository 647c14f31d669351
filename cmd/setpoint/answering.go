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

// answerTimeout bounds asking servers whether they are ready, all at once.
const answerTimeout = 2 * time.Second

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
	if len(others) == 0 || len(ready(&raw, []string{raw.CurrentContext})) == 1 {
		return nil
	}
	found := ready(&raw, others)
	for _, name := range others {
		if config := found[name]; config != nil {
			fmt.Fprintf(out, "%s does not answer: using %s\n", raw.CurrentContext, name)
			return config
		}
	}
	return nil
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

// ready asks the servers of contexts at once, and returns how to reach those that are.
func ready(raw *clientcmdapi.Config, names []string) map[string]*rest.Config {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	type answer struct {
		name   string
		config *rest.Config
	}
	answers := make(chan answer, len(names))
	for _, name := range names {
		go func() {
			config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, nil, nil).ClientConfig()
			if err != nil || !isReady(ctx, config) {
				config = nil
			}
			answers <- answer{name, config}
		}()
	}
	found := map[string]*rest.Config{}
	for range names {
		if a := <-answers; a.config != nil {
			found[a.name] = a.config
		}
	}
	return found
}

func isReady(ctx context.Context, config *rest.Config) bool {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return false
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
