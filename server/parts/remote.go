package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/parts"
	"github.com/setpoint-io/setpoint/internal/trust"
)

const (
	// askTimeout bounds how long a server may take to say how its parts are, answerTimeout how long another waits for that.
	askTimeout    = 2 * time.Second
	answerTimeout = 3 * time.Second
	// reportBytesMax bounds what it may say.
	reportBytesMax = 64 << 10
)

var errNoMember = errors.New("it is not a member of the control plane")

// Remote reaches the parts of every server of the cluster, also of this one. It implements rest.Servers.
type Remote struct {
	// Members are all servers now.
	Members func() []trust.Server
	// Peer is the client of a server, and its URL at an address.
	Peer func(name, address string) (*http.Client, string)
}

// Server is where the server serves the logs of its parts that the pod is of. Other pods are not ok.
func (r Remote) Server(pod *corev1.Pod) (base *url.URL, transport http.RoundTripper, ok bool, err error) {
	name, _, ok := parts.Of(pod)
	if !ok {
		return nil, nil, false, nil
	}
	client, at, err := r.find(name)
	if err != nil {
		return nil, nil, true, err
	}
	base, err = url.Parse(at + servicePath)
	return base, client.Transport, true, err
}

func (r Remote) find(name string) (*http.Client, string, error) {
	for _, member := range r.Members() {
		if member.Name == name {
			client, at := r.Peer(member.Name, member.Endpoint)
			return client, at, nil
		}
	}
	return nil, "", fmt.Errorf("server %s: %w", name, errNoMember)
}

// Report asks a server how its parts are.
func (r Remote) Report(ctx context.Context, name string) (Report, error) {
	client, at, err := r.find(name)
	if err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at+reportPath, strings.NewReader("{}"))
	if err != nil {
		return Report{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return Report{}, fmt.Errorf("it answers %s", response.Status)
	}
	report := Report{}
	err = json.NewDecoder(io.LimitReader(response.Body, reportBytesMax)).Decode(&report)
	return report, err
}
