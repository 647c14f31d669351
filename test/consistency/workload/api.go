package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
	"github.com/setpoint-io/setpoint/test/consistency/history"
)

const (
	requestTimeout = 5 * time.Second
	answerLimit    = 8 << 20 // bytes
)

// An API talks to the servers. Each client has its own: connections are not shared.
type API struct {
	cluster cluster.Cluster
	http    *http.Client
}

// NewAPI makes a client of all servers.
func NewAPI(c cluster.Cluster) *API {
	return &API{cluster: c, http: &http.Client{Transport: &http.Transport{
		DialContext: c.Dial, TLSClientConfig: c.TLS(), TLSHandshakeTimeout: requestTimeout,
	}}}
}

// Close gives connections back.
func (a *API) Close() { a.http.CloseIdleConnections() }

type meta struct {
	Name            string            `json:"name,omitempty"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	Continue        string            `json:"continue,omitempty"`
}

// object is one of a Kind, a list of them, or a Status: what of them counts here.
type object struct {
	Kind     string   `json:"kind,omitempty"`
	Metadata meta     `json:"metadata"`
	Items    []object `json:"items,omitempty"`
	Code     int      `json:"code,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Message  string   `json:"message,omitempty"`
	Details  struct {
		UID               string `json:"uid"`
		RetryAfterSeconds int    `json:"retryAfterSeconds"`
	} `json:"details"`
}

// The parts of an object, in annotations, which every kind has: who wrote it last, the counter, and, a label, what selectors ask for.
const (
	valueField = "value"
	countField = "count"
	sideLabel  = "side"
)

func (o *object) revision() uint64 {
	revision, _ := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64) // 0 is never one
	return revision
}

func (o *object) item() history.Item {
	count, _ := strconv.Atoi(o.Metadata.Annotations[countField]) // only the counter has it
	return history.Item{Key: o.Metadata.Name, UID: o.Metadata.UID, Revision: o.revision(),
		Value: o.Metadata.Annotations[valueField], Side: o.Metadata.Labels[sideLabel], Count: count}
}

// manifest is the object of an item; its Revision is the precondition.
func manifest(item history.Item) object {
	o := object{Metadata: meta{Name: item.Key, UID: item.UID, Annotations: map[string]string{valueField: item.Value}}}
	if item.Revision != 0 {
		o.Metadata.ResourceVersion = strconv.FormatUint(item.Revision, 10)
	}
	if item.Side != "" {
		o.Metadata.Labels = map[string]string{sideLabel: item.Side}
	}
	if item.Count != 0 {
		o.Metadata.Annotations[countField] = strconv.Itoa(item.Count)
	}
	return o
}

// do sends one request to a server. What the client may conclude is the outcome; the
// error says why in words.
func (a *API) do(ctx context.Context, server int, method, path string, body any) (*object, history.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := a.send(ctx, server, method, path, body)
	if err != nil {
		return nil, failed(err), err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return nil, history.Unknown, err
	}
	o := &object{}
	if err := json.Unmarshal(text, o); err != nil {
		return nil, history.Unknown, fmt.Errorf("%s: %w", response.Status, err)
	}
	outcome := answer(method, response.StatusCode, o)
	if outcome == history.OK {
		return o, outcome, nil
	}
	return o, outcome, fmt.Errorf("%d %s", response.StatusCode, o.Message)
}

func (a *API) send(ctx context.Context, server int, method, path string, body any) (*http.Response, error) {
	var reader io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.cluster.URL(server)+path, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return a.http.Do(request)
}

// failed is what one knows of a request without an answer: it was never sent, if there was no connection.
func failed(err error) history.Outcome {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return history.Refused
	}
	return history.Unknown
}

// answer is what a client may conclude. Only what carries Retry-After, or is a plain refusal, took
// no effect: client-go would send it again.
func answer(method string, code int, o *object) history.Outcome {
	switch {
	case code < http.StatusMultipleChoices:
		return history.OK
	case code == http.StatusNotFound && method != http.MethodPost:
		return history.Absent
	case code == http.StatusConflict && method == http.MethodPost:
		return history.Exists
	case code == http.StatusConflict:
		return history.Conflict
	case code < http.StatusInternalServerError, o.Details.RetryAfterSeconds > 0, code == http.StatusInsufficientStorage:
		return history.Refused
	default:
		return history.Unknown
	}
}
