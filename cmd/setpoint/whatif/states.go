package whatif

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
)

var errNoServer = errors.New("no server is known that could be asked")

// AskInJSON is what-if for a page. The question has no file and no time, which is that of the command; one without a namespace is about
// the default one. The answer has States. A question that cannot be read or says no one thing is an admin.Refusal with code 400, one
// about what there is not, or that the cluster would refuse, with code 422.
func AskInJSON(ctx context.Context, servers []*rest.Config, question []byte) (any, error) {
	q := Question{States: true, For: forDefault}
	if err := admin.ReadOrder(bytes.NewReader(question), &q); err != nil {
		return nil, malformed(fmt.Errorf("no question: %w", err))
	}
	if q.Namespace == "" {
		q.Namespace = metav1.NamespaceDefault
	}
	if err := q.Validate(); err != nil {
		return nil, malformed(err)
	}
	answer, err := askOneOf(ctx, servers, q)
	if no, is := errors.AsType[impossible](err); is {
		return nil, &admin.Refusal{StatusCode: http.StatusUnprocessableEntity, Reason: no.Error()}
	}
	return answer, err
}

func malformed(err error) error {
	return &admin.Refusal{StatusCode: http.StatusBadRequest, Reason: err.Error()}
}

// askOneOf asks one server after the other until one has let the cluster be copied, and what would happen then.
func askOneOf(ctx context.Context, servers []*rest.Config, q Question) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, workMax)
	defer cancel()
	failed := errNoServer
	for _, server := range servers {
		f, err := open(ctx, server, forkBytesMax)
		if err == nil {
			return f.ask(ctx, q, strings.NewReader(""))
		}
		if failed = worded(ctx, err); !anotherMay(ctx, err) {
			break
		}
	}
	return nil, failed
}

// states are nodes and pods before and after.
func (l *ledger) states() *States {
	states := &States{Nodes: []NodeStates{}, Now: l.all(l.base), Then: l.all(l.pods)}
	for _, name := range slices.Sorted(maps.Keys(l.nodes)) {
		states.Nodes = append(states.Nodes, NodeStates{Name: name, Now: matter(l.nodesBefore[name]), Then: matter(l.nodes[name])})
	}
	return states
}

// matter is nothing for a node that is ready and takes pods.
func matter(state string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(state, "is "), "Ready"), ", ")
}

func (l *ledger) all(pods map[types.UID]*corev1.Pod) []Pod {
	all := make([]Pod, 0, len(pods))
	for _, pod := range pods {
		shown := l.shown(pod)
		shown.UID, shown.Ending, shown.Over = pod.UID, pod.DeletionTimestamp != nil, over(pod)
		all = append(all, shown)
	}
	slices.SortFunc(all, inOrder)
	return all
}
