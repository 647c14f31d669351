package kubeletapi

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/shares"
)

const (
	// dialsMax bounds the connections to pods that servers have through this node at once, podDialsMax those to one pod.
	dialsMax, podDialsMax = 1024, 256
	// streamsMax bounds the logs, exec, attach and port-forward streams of this node's pods at once, podStreamsMax those of one pod.
	streamsMax, podStreamsMax = 1024, 256
	// streamBytes is what one takes of the agent's memory, the garbage collector's part included: SPDY compresses headers, and has half of
	// it for that. All have one in streamMemoryPart of the memory at most.
	streamBytes, streamMemoryPart = 1 << 20, 2
)

// sharing divides what is open to the pods of this node: among namespaces, and so that one pod does not have all of its namespace.
type sharing struct{ namespaces, pods *shares.Places }

func newSharing(what string, all, ofPod int) sharing {
	return sharing{
		namespaces: shares.New(what, shares.Limits{All: all}),
		pods:       shares.New(what+" of one pod", shares.Limits{All: all, Each: ofPod, Privileged: ofPod}),
	}
}

// enter takes a place for a pod, or says with 429 why there is none. What runs in kube-system does not wait for tenants.
func (s sharing) enter(p *corev1.Pod) (leave func(), refused *statusError) {
	namespace := shares.Namespace(p.Namespace)
	leavePod, err := s.pods.Enter(shares.Holder{Name: "pod " + p.Namespace + "/" + p.Name, Privileged: namespace.Privileged})
	if err != nil {
		return nil, &statusError{http.StatusTooManyRequests, err.Error()}
	}
	leaveNamespace, err := s.namespaces.Enter(namespace)
	if err != nil {
		leavePod()
		return nil, &statusError{http.StatusTooManyRequests, err.Error()}
	}
	return func() {
		leaveNamespace()
		leavePod()
	}, nil
}

// shared lets a stream of a pod begin if there is a place for it. A pod that is not here is the handler's to refuse.
func (s *server) shared(stream http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if pod, unknown := s.pod(r); unknown == nil {
			leave, refused := s.streams.enter(pod)
			if refused != nil {
				refuse(w, refused)
				return
			}
			defer leave()
		}
		stream(w, r)
	}
}
