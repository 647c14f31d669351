package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/backoff"
	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/runtime/images/credentials"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// Waiting reasons of a container whose image is not there.
const (
	ReasonInvalidName = "InvalidImageName"
	ReasonInspect     = "ImageInspectError"
	ReasonNeverPull   = "ErrImageNeverPull"
	ReasonPull        = "ErrImagePull"
	ReasonBackOff     = "ImagePullBackOff"
)

// DefaultPullsMax bounds the pulls in flight on a node.
const DefaultPullsMax = 5

// Error says why the image is not there.
type Error struct {
	Reason, Message string
	// Retry is how long to wait before asking again; 0 leaves it to the caller.
	Retry time.Duration
}

func (e *Error) Error() string { return e.Reason + ": " + e.Message }

// Config of a Puller; all fields but the last five are required.
type Config struct {
	Service criapi.ImageManagerService
	Events  events.Recorder
	// Dir keeps who may use which image; it is made when it is needed.
	Dir string
	// Secret reads a pull secret.
	Secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// Verification says which images that are here need credentials.
	Verification Verification
	// Plugins give credentials of the node, or of a pod's service account; nil gives none.
	Plugins *credentials.Plugins
	// Accounts reads service accounts; only Plugins need it.
	Accounts credentials.Accounts
	// PullsMax bounds the pulls in flight of all namespaces but kube-system, which has as many of its own, unless it is 1; 0 is
	// DefaultPullsMax.
	PullsMax int
	// Progress says how many bytes have come of a pull that is under way, of how many; 0: that is not known yet. Nil knows of none.
	Progress func(image string) (bytes, total int64, underway bool)
}

// Puller pulls images for all pods of a node. It is safe for concurrent use.
type Puller struct {
	Config
	turns *shares.Turns

	mu       sync.Mutex
	failures map[key]*failure
	pulling  map[string]chan struct{} // image -> closed when its pull ended

	recording sync.Mutex // held while records of access change
}

// key: the back-off is per pod, so that a new pod tries at once.
type key struct{ pod, image string }

type failure struct {
	backoff.Backoff
	at      time.Time
	message string
}

// New returns a Puller.
func New(cfg Config) *Puller {
	cfg.PullsMax = cmp.Or(cfg.PullsMax, DefaultPullsMax)
	return &Puller{Config: cfg, turns: shares.NewTurns(pullLimits(cfg.PullsMax)),
		failures: map[key]*failure{}, pulling: map[string]chan struct{}{}}
}

// pullLimits leave one pull to other namespaces, if there are several: a registry that gives a byte now and then keeps its pulls for long.
func pullLimits(most int) shares.Limits {
	return shares.Limits{All: most, Factor: most - 1, Privileged: most}
}

// Ensure returns the runtime's reference of c's image, pulling it if the policy
// says so. Any error is a *Error, or ctx's.
func (p *Puller) Ensure(
	ctx context.Context,
	pod *corev1.Pod,
	c *corev1.Container,
	sandbox *runtimeapi.PodSandboxConfig,
) (*runtimeapi.Image, error) {
	if _, err := name.ParseReference(c.Image); err != nil {
		msg := fmt.Sprintf("Failed to apply default image tag %q: couldn't parse image name %q: invalid reference format", c.Image, c.Image)
		p.Events.Event(events.Container(pod, c.Name), corev1.EventTypeWarning, events.InspectFailed, msg)
		return nil, &Error{Reason: ReasonInvalidName, Message: msg}
	}
	image, err := p.find(ctx, c.Image)
	if err != nil {
		msg := fmt.Sprintf("Failed to inspect image %q: %v", c.Image, err)
		p.Events.Event(events.Container(pod, c.Name), corev1.EventTypeWarning, events.InspectFailed, msg)
		return nil, &Error{Reason: ReasonInspect, Message: msg}
	}
	if mustPull(c, image != nil) {
		return p.pull(ctx, pod, c, sandbox)
	}
	if image != nil && !p.mayUse(ctx, pod, image, c.Image) {
		if c.ImagePullPolicy != corev1.PullNever {
			return p.pull(ctx, pod, c, sandbox) // the registry decides
		}
		image = nil // and who may not use it does not hear that it is here
	}
	return p.present(pod, c, image)
}

// mayUse reports whether the pod may use what is here without asking the registry.
func (p *Puller) mayUse(ctx context.Context, pod *corev1.Pod, present *runtimeapi.Image, image string) bool {
	return p.access().allows(present, image, p.Verification, podCredentials{
		secrets: func() []credential { return p.secretCredentials(ctx, pod, image) },
		account: func() []credential { return p.pluginCredentials(ctx, pod, image, p.Plugins.AccountLogins) },
	})
}

func (p *Puller) access() access { return access{p.Dir} }

func (p *Puller) present(pod *corev1.Pod, c *corev1.Container, image *runtimeapi.Image) (*runtimeapi.Image, error) {
	ref := events.Container(pod, c.Name)
	if image == nil {
		msg := fmt.Sprintf("Container image %q is not present with pull policy of Never", c.Image)
		p.Events.Event(ref, corev1.EventTypeWarning, events.NeverPull, msg)
		return nil, &Error{Reason: ReasonNeverPull, Message: msg}
	}
	p.Events.Event(
		ref,
		corev1.EventTypeNormal,
		events.Pulled,
		fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", c.Image),
	)
	return image, nil
}

// mustPull is the pull policy. A policy the API should have defaulted counts as
// IfNotPresent, or as Always for the tag latest.
func mustPull(c *corev1.Container, present bool) bool {
	switch c.ImagePullPolicy {
	case corev1.PullAlways:
		return true
	case corev1.PullNever:
		return false
	default:
		return !present
	}
}

// find returns nil when the image is not on the node.
func (p *Puller) find(ctx context.Context, image string) (*runtimeapi.Image, error) {
	resp, err := p.Service.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: image}, false)
	if err != nil {
		return nil, err
	}
	if resp.GetImage().GetId() == "" {
		return nil, nil
	}
	return resp.Image, nil
}

func (p *Puller) pull(
	ctx context.Context,
	pod *corev1.Pod,
	c *corev1.Container,
	sandbox *runtimeapi.PodSandboxConfig,
) (*runtimeapi.Image, error) {
	ref, k := events.Container(pod, c.Name), key{string(pod.UID), c.Image}
	if wait, cause := p.inBackOff(k, time.Now()); wait > 0 {
		msg := fmt.Sprintf("Back-off pulling image %q", c.Image)
		p.Events.Event(ref, corev1.EventTypeNormal, events.BackOff, msg)
		return nil, &Error{Reason: ReasonBackOff, Message: msg + ": " + ReasonPull + ": " + cause, Retry: wait}
	}
	p.Events.Event(ref, corev1.EventTypeNormal, events.Pulling, fmt.Sprintf("Pulling image %q", c.Image))
	asked := time.Now()
	stop := p.tellProgress(ctx, ref, c.Image)
	began, by, err := p.download(ctx, pod, c.Image, sandbox)
	stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil {
		return p.pulled(ctx, pull{ref, k, c.Image, asked, began, by})
	}
	msg := fmt.Sprintf("Failed to pull image %q: %v", c.Image, err)
	p.Events.Event(ref, corev1.EventTypeWarning, events.Failed, msg)
	p.tellMissingSecrets(ctx, pod)
	wait := p.failed(k, time.Now(), msg)
	return nil, &Error{Reason: ReasonPull, Message: msg, Retry: wait}
}

// pull is one that succeeded.
type pull struct {
	ref          *corev1.ObjectReference
	key          key
	image        string
	asked, began time.Time
	by           *grant
}

// pulled looks the new image up, remembers who may use it, and says how long it took.
func (p *Puller) pulled(ctx context.Context, done pull) (*runtimeapi.Image, error) {
	p.mu.Lock()
	delete(p.failures, done.key)
	p.mu.Unlock()
	got, err := p.find(ctx, done.image)
	if err == nil && got == nil {
		err = errors.New("the runtime does not know the image it pulled")
	}
	if err == nil {
		err = p.remember(ctx, got.Id, done)
	}
	if err != nil {
		return nil, &Error{Reason: ReasonInspect, Message: fmt.Sprintf("Failed to inspect image %q: %v", done.image, err)}
	}
	end := time.Now()
	p.Events.Eventf(
		done.ref,
		corev1.EventTypeNormal,
		events.Pulled,
		"Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		done.image,
		end.Sub(done.began).Truncate(time.Millisecond),
		end.Sub(done.asked).Truncate(time.Millisecond),
		got.Size,
	)
	return got, nil
}

func (p *Puller) remember(ctx context.Context, id string, done pull) error {
	p.recording.Lock()
	defer p.recording.Unlock()
	if err := p.access().pulled(id, done.image, done.by); err != nil {
		return err
	}
	if present, err := p.Service.ListImages(ctx, nil); err == nil {
		p.access().prune(present)
	}
	return nil
}

// download waits for its turn, then tries each credential; by is the one that was good.
func (p *Puller) download(
	ctx context.Context,
	pod *corev1.Pod,
	image string,
	sandbox *runtimeapi.PodSandboxConfig,
) (began time.Time, by *grant, err error) {
	release, err := p.enter(ctx, pod.Namespace, image)
	if err != nil {
		return time.Now(), nil, err
	}
	defer release()
	began = time.Now()
	if err := p.access().begin(image); err != nil {
		return began, nil, err
	}
	for _, c := range p.credentials(ctx, pod, image) {
		if _, err = p.Service.PullImage(ctx, &runtimeapi.ImageSpec{Image: image}, c.auth, sandbox); err == nil {
			return began, c.grant, nil
		}
	}
	if ctx.Err() == nil { // otherwise the runtime may still finish it
		p.access().failed(image)
	}
	return began, nil, err
}

// enter lets one pull of an image run at a time, and PullsMax of tenants, beside as many of kube-system; with PullsMax 1 all share it. Who
// waits for another pull of his image holds no place, and who waits for a place keeps nobody from the image.
func (p *Puller) enter(ctx context.Context, namespace, image string) (release func(), err error) {
	tenant := shares.Namespace(namespace)
	tenant.Privileged = tenant.Privileged && p.PullsMax > 1 // one at a time means everybody's
	for {
		leave, err := p.turns.Wait(ctx, tenant)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		other := p.pulling[image]
		if other == nil {
			p.pulling[image] = make(chan struct{})
			p.mu.Unlock()
			return func() { leave(); p.leave(image) }, nil
		}
		p.mu.Unlock()
		leave()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-other:
		}
	}
}

func (p *Puller) leave(image string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.pulling[image])
	delete(p.pulling, image)
}

func (p *Puller) inBackOff(k key, now time.Time) (time.Duration, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.failures[k]
	if f == nil {
		return 0, ""
	}
	return f.Remaining(f.at, now), f.message
}

func (p *Puller) failed(k key, now time.Time, message string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.failures[k]
	if f == nil {
		f = &failure{}
		p.failures[k] = f
	}
	f.at, f.message = now, message
	f.Next(now, now)
	return f.Remaining(now, now)
}

// Forget drops the back-offs of a pod that is gone.
func (p *Puller) Forget(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.failures {
		if k.pod == string(pod.UID) {
			delete(p.failures, k)
		}
	}
}
