package podsapi

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// WatchPods sends all pods, INITIAL_SYNC_COMPLETE, and then what changes.
func (s *service) WatchPods(_ *api.WatchPodsRequest, stream grpc.ServerStreamingServer[api.WatchPodsEvent]) error {
	select {
	case s.watchers <- struct{}{}:
		defer func() { <-s.watchers }()
	default:
		return grpcstatus.Errorf(codes.ResourceExhausted, "more than %d watches at a time", watchersMax)
	}
	w := &watcher{send: stream.Send, sent: map[types.UID]sent{}}
	for first := true; ; first = false {
		changed := s.next() // before looking: what changes meanwhile is looked at again
		pods, err := s.pods()
		if err != nil {
			return err
		}
		if err := w.bringUpToDate(pods); err != nil {
			return err
		}
		if first {
			if err := stream.Send(&api.WatchPodsEvent{Type: api.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-changed:
		}
	}
}

// watcher knows what one client was sent.
type watcher struct {
	send func(*api.WatchPodsEvent) error
	sent map[types.UID]sent
}

// sent is one pod as a client knows it.
type sent struct {
	namespace, name string
	sum             [sha256.Size]byte
}

// bringUpToDate sends what the client does not know.
func (w *watcher) bringUpToDate(pods []*corev1.Pod) error {
	present := map[types.UID]bool{}
	for _, pod := range pods {
		present[pod.UID] = true
		if err := w.tell(pod); err != nil {
			return err
		}
	}
	for _, uid := range slices.SortedFunc(maps.Keys(w.sent), func(a, b types.UID) int { return strings.Compare(string(a), string(b)) }) {
		if present[uid] {
			continue
		}
		if err := w.tellGone(uid); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) tell(pod *corev1.Pod) error {
	text, err := pod.Marshal()
	if err != nil {
		return grpcstatus.Errorf(codes.Internal, "failed to marshal pod: %v", err)
	}
	old, known := w.sent[pod.UID]
	now := sent{pod.Namespace, pod.Name, sha256.Sum256(text)}
	if known && old == now {
		return nil
	}
	kind := api.EventType_ADDED
	if known {
		kind = api.EventType_MODIFIED
	}
	w.sent[pod.UID] = now
	return w.send(&api.WatchPodsEvent{Type: kind, Pod: text})
}

// tellGone says only which pod is gone, as a kubelet.
func (w *watcher) tellGone(uid types.UID) error {
	old := w.sent[uid]
	delete(w.sent, uid)
	text, err := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: old.namespace, Name: old.name, UID: uid}}).Marshal()
	if err != nil {
		return grpcstatus.Errorf(codes.Internal, "failed to marshal pod: %v", err)
	}
	return w.send(&api.WatchPodsEvent{Type: api.EventType_DELETED, Pod: text})
}
