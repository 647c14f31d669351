package podsapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/pods/status"
)

const (
	// callsPerSecond and callsBurst bound the calls of all clients. Upstream's.
	callsPerSecond = 100
	callsBurst     = 10
	// requestBytesMax bounds a request, which has one uid at most.
	requestBytesMax = 16 << 10
	// watchersMax bounds the watches at a time.
	watchersMax = 100
)

// Node are the pods of a node.
type Node interface {
	// Pods are all but mirrors, with the status that the API has of them.
	Pods() []*corev1.Pod
	// Mirrors says in known whether the API has told of all pods.
	Mirrors() (list []*corev1.Pod, known bool)
}

// Server tells of them. Use New; it is safe for concurrent use.
type Server struct {
	api.UnimplementedPodsServer
	watchers chan struct{}

	mu       sync.Mutex
	statuses map[types.UID]*corev1.PodStatus
	changed  chan struct{} // closed with the next change
}

// New returns one that knows no status yet.
func New() *Server {
	return &Server{watchers: make(chan struct{}, watchersMax), statuses: map[types.UID]*corev1.PodStatus{}, changed: make(chan struct{})}
}

// PodChanged implements status.Listener. A status that says the same as before wakes nobody, and its times of transition stay.
func (s *Server) PodChanged(uid types.UID, now *corev1.PodStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.statuses[uid]; old != nil && now != nil {
		merged := status.Merge(*old, *now)
		if equality.Semantic.DeepEqual(old, &merged) {
			return
		}
		now = &merged
	}
	if now != nil {
		s.statuses[uid] = now
	}
	s.wake()
}

// PodGone implements status.Listener.
func (s *Server) PodGone(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.statuses, uid)
	s.wake()
}

// wake has the watchers look. s.mu is held.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Run answers for node's pods at the path socket until ctx ends. The error is about the socket.
func (s *Server) Run(ctx context.Context, socket string, node Node) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("pods API: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("pods API: %w", err)
	}
	calls := flowcontrol.NewTokenBucketRateLimiter(callsPerSecond, callsBurst)
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(requestBytesMax), grpc.UnaryInterceptor(limitCalls(calls)), grpc.StreamInterceptor(limitStreams(calls)),
	)
	api.RegisterPodsServer(server, &service{Server: s, node: node})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("pods API: %w", err)
	}
	return nil
}

var errTooMany = grpcstatus.Errorf(codes.ResourceExhausted, "rejected by rate limit: more than %d calls in a second", callsPerSecond)

func limitCalls(limiter flowcontrol.PassiveRateLimiter) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if !limiter.TryAccept() {
			return nil, errTooMany
		}
		return handle(ctx, request)
	}
}

func limitStreams(limiter flowcontrol.PassiveRateLimiter) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		if !limiter.TryAccept() {
			return errTooMany
		}
		return handle(srv, stream)
	}
}

// service answers for one node.
type service struct {
	*Server
	node Node
}

// ListPods tells of all pods, in the order of their uids.
func (s *service) ListPods(context.Context, *api.ListPodsRequest) (*api.ListPodsResponse, error) {
	pods, err := s.pods()
	if err != nil {
		return nil, err
	}
	answer := &api.ListPodsResponse{}
	for _, pod := range pods {
		text, err := pod.Marshal()
		if err != nil {
			return nil, grpcstatus.Errorf(codes.Internal, "failed to marshal pod: %v", err)
		}
		answer.Pods = append(answer.Pods, text)
	}
	return answer, nil
}

// GetPod tells of one.
func (s *service) GetPod(_ context.Context, r *api.GetPodRequest) (*api.GetPodResponse, error) {
	pods, err := s.pods()
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if string(pod.UID) != r.PodUID {
			continue
		}
		text, err := pod.Marshal()
		if err != nil {
			return nil, grpcstatus.Errorf(codes.Internal, "failed to marshal pod: %v", err)
		}
		return &api.GetPodResponse{Pod: text}, nil
	}
	return nil, grpcstatus.Errorf(codes.NotFound, "pod with UID %s not found", r.PodUID)
}

var errInitializing = grpcstatus.Error(codes.FailedPrecondition, "Kubelet is initializing")

// pods are those of the node with the newest statuses.
func (s *service) pods() ([]*corev1.Pod, error) {
	if _, known := s.node.Mirrors(); !known {
		return nil, errInitializing
	}
	list := s.node.Pods()
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, pod := range list {
		one := *pod
		one.Status = effective(&pod.Status, s.statuses[pod.UID])
		list[i] = &one
	}
	return list, nil
}

// effective is what the agent found out, or, before it has looked at the pod, what the API says but for its readiness.
func effective(said, found *corev1.PodStatus) corev1.PodStatus {
	if found != nil {
		return status.Merge(*said, *found)
	}
	out := *said.DeepCopy()
	if out.Phase == "" {
		out.Phase = corev1.PodPending
	}
	for i := range out.Conditions {
		if c := &out.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ContainersNotReady", "Kubelet is initializing pod containers"
		}
	}
	return out
}
