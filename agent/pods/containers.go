package pods

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/backoff"
	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/images"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/volumes"
)

// Waiting reasons of containers that could not be started.
const (
	reasonCreating  = "ContainerCreating"
	reasonConfig    = "CreateContainerConfigError"
	reasonCreate    = "CreateContainerError"
	reasonRun       = "RunContainerError"
	reasonPostStart = "PostStartHookError"
)

// pullShown is how long a failed pull shows as ErrImagePull before it shows as
// the back-off it is in.
const pullShown = 2 * time.Second

// keepIncarnations is how many of a container's incarnations stay, for logs of
// the previous one.
const keepIncarnations = 2

// failure is why a container could not be started.
type failure struct {
	reason, message string
	retry           time.Duration // 0: the worker's own pauses
}

func fail(reason string, err error) *failure { return &failure{reason: reason, message: err.Error()} }

// startContainers starts them in order; one that fails does not keep the
// others from starting.
func (w *worker) startContainers(ctx context.Context, v view, list []*corev1.Container) {
	for _, c := range list {
		f := w.startContainer(ctx, v, c)
		if ctx.Err() != nil {
			return
		}
		w.note(ctx, v, c, f)
		w.poke()
	}
}

// note remembers the outcome for the next plan and the status.
func (w *worker) note(ctx context.Context, v view, c *corev1.Container, f *failure) {
	if f != nil {
		w.logger.Log(ctx, w.noteLevel(c.Name, f), "container cannot start yet", "container", c.Name, "reason", f.reason, "err", f.message)
		w.m.Events.Event(events.Container(v.pod, c.Name), corev1.EventTypeWarning, events.Failed, "Error: "+eventText(f))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if f == nil {
		delete(w.notes.waiting, c.Name)
		delete(w.notes.retryAt, c.Name)
		delete(w.notes.retries, c.Name)
		return
	}
	w.notes.waiting[c.Name] = status.Waiting{Reason: f.reason, Message: f.message}
	if f.reason == reasonRun || f.reason == reasonPostStart {
		w.notes.startFailed[c.Name] = time.Now() // an incarnation that failed: the crash back-off counts
		return
	}
	delay := f.retry
	if f.reason == images.ReasonPull {
		delay = min(delay, pullShown)
	}
	if delay == 0 {
		delay = retryDelay(w.notes.retries[c.Name])
	}
	w.notes.retries[c.Name]++
	w.notes.retryAt[c.Name] = time.Now().Add(delay)
}

// noteLevel warns of a reason once; its repetition is for who looks closely.
func (w *worker) noteLevel(container string, f *failure) slog.Level {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notes.waiting[container].Reason == f.reason {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// eventText is the reason for images, whose details have their own event.
func eventText(f *failure) string {
	switch f.reason {
	case images.ReasonPull, images.ReasonBackOff, images.ReasonNeverPull, images.ReasonInvalidName, images.ReasonInspect:
		return f.reason
	default:
		return f.message
	}
}

// startContainer takes c from its image to a running process.
func (w *worker) startContainer(ctx context.Context, v view, c *corev1.Container) *failure {
	if err := w.checkEphemeral(ctx, v, c.Name); err != nil {
		return fail(reasonConfig, err)
	}
	sandbox := v.runtime.ReadySandbox()
	sandboxCfg, err := podconfig.Sandbox(v.pod, sandbox.Metadata.GetAttempt(), w.m.Dirs, w.m.DNS(), w.m.Users.Of(w.uid), w.m.node())
	if err != nil {
		return fail(reasonConfig, err)
	}
	image, err := w.m.Images.Ensure(ctx, v.pod, c, sandboxCfg)
	if err != nil {
		return imageFailure(err)
	}
	attempt := w.attempt(v, c.Name)
	volumeImages, err := w.imageVolumes(ctx, v, c, sandboxCfg)
	if err != nil {
		return imageFailure(err)
	}
	cfg, err := w.containerConfig(ctx, v, c, attempt, image, volumeImages)
	if err != nil {
		return fail(reasonConfig, err)
	}
	w.removeOldIncarnations(ctx, v, c.Name)
	id, err := w.m.Runtime.CreateContainer(ctx, sandbox.Id, cfg, sandboxCfg)
	if err != nil {
		return fail(reasonCreate, err)
	}
	w.countRestart(v, c.Name) // not before, or a look meanwhile would find it in its back-off
	ref := events.Container(v.pod, c.Name)
	w.m.Events.Event(ref, corev1.EventTypeNormal, events.Created, "Container created")
	if err := w.m.Runtime.StartContainer(ctx, id); err != nil {
		return fail(reasonRun, err)
	}
	w.linkLog(ctx, id)
	w.startedWith(id, c)
	if w.m.Pinning != nil {
		w.m.Pinning.Reconcile()
	}
	w.m.Events.Event(ref, corev1.EventTypeNormal, events.Started, "Container started")
	return w.postStart(ctx, v, c, id)
}

// imageVolumes are the images that c mounts, by the names of its pod's volumes. They are pulled as its own image is.
func (w *worker) imageVolumes(
	ctx context.Context,
	v view,
	c *corev1.Container,
	sandbox *runtimeapi.PodSandboxConfig,
) (map[string]*runtimeapi.Image, error) {
	found := map[string]*runtimeapi.Image{}
	for i := range v.pod.Spec.Volumes {
		source := &v.pod.Spec.Volumes[i]
		if source.Image == nil || !mountsVolume(c, source.Name) {
			continue
		}
		asked := &corev1.Container{Name: c.Name, Image: source.Image.Reference, ImagePullPolicy: source.Image.PullPolicy}
		image, err := w.m.Images.Ensure(ctx, v.pod, asked, sandbox)
		if err != nil {
			return nil, err
		}
		found[source.Name] = image
	}
	return found, nil
}

func mountsVolume(c *corev1.Container, name string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(vm corev1.VolumeMount) bool { return vm.Name == name })
}

func imageFailure(err error) *failure {
	if e, ok := errors.AsType[*images.Error](err); ok {
		return &failure{reason: e.Reason, message: e.Message, retry: e.Retry}
	}
	return fail(images.ReasonPull, err)
}

// attempt is how many incarnations came before, from the best witness: the
// runtime, else the log files, else the API.
func (w *worker) attempt(v view, name string) int {
	if c := v.runtime.Latest(name); c != nil {
		return c.RestartCount() + 1
	}
	n := nextLog(filepath.Join(w.m.Dirs.PodLogs(v.pod), name))
	if c := v.removed[name]; c != nil {
		n = max(n, c.RestartCount()+1)
	}
	if s := containerStatus(v.pod, name); s != nil && (s.ContainerID != "" || s.LastTerminationState.Terminated != nil) {
		n = max(n, int(s.RestartCount)+1)
	}
	return n
}

// nextLog is one more than the highest n for which n.log is in dir.
func nextLog(dir string) int {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	next := 0
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), ".")
		if n, err := strconv.Atoi(number); err == nil {
			next = max(next, n+1)
		}
	}
	return next
}

// countRestart lengthens the back-off when an incarnation has ended before.
func (w *worker) countRestart(v view, name string) {
	failed := v.ended(name)
	if failed.IsZero() || v.stoppedForResize(name) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.notes.crashes[name]
	if b == nil {
		b = &backoff.Backoff{Longest: w.m.RestartPauseMax}
		w.notes.crashes[name] = b
	}
	b.Next(failed, time.Now())
}

// containerConfig gathers all a container needs beside its image.
func (w *worker) containerConfig(
	ctx context.Context,
	v view,
	c *corev1.Container,
	attempt int,
	image *runtimeapi.Image,
	volumeImages map[string]*runtimeapi.Image,
) (*runtimeapi.ContainerConfig, error) {
	w.mu.Lock()
	places := w.notes.places
	w.mu.Unlock()
	ips := podIPs(v.pod, v.runtime, w.m.HostIPs())
	if lacks(places, c) { // an earlier agent mounted them, or an ephemeral container is the first to have one
		var err error
		if places, err = w.mountVolumes(ctx, v, ips, false); err != nil {
			return nil, err
		}
	}
	in := podconfig.ContainerInput{
		EnvInput: podconfig.EnvInput{
			Pod: v.pod, Objects: w.m.Objects, PodIPs: ips, HostIPs: w.m.HostIPs(), Allocatable: w.m.Allocatable(), File: fileOf(places),
		},
		Container: c, Attempt: attempt, Image: image,
		SeccompDir: w.m.Dirs.Seccomp(), SeccompDefault: w.m.SeccompDefault, Target: target(v, c.Name),
		Users: w.m.Users.Of(w.uid), QuotaPeriod: w.m.QuotaPeriod,
	}
	cfg, err := podconfig.Container(ctx, in)
	if err != nil {
		return nil, err
	}
	cfg.Mounts, err = w.mounts(v, c, attempt, volumes.MountInput{Places: places, Images: volumeImages}, cfg.Envs)
	if err != nil {
		return nil, err
	}
	cfg.Devices, err = w.m.Volumes.Devices(volumes.MountInput{Pod: v.pod, Container: c, Places: places})
	if err != nil {
		return nil, err
	}
	node, err := nodeOf(ctx, w.m.Runtime)
	if err != nil {
		return nil, err
	}
	if err := podconfig.RecurseReadOnly(c, cfg.Mounts, node); err != nil {
		return nil, err
	}
	podconfig.MapUsers(cfg.Mounts, in.Users)
	given, err := w.given(ctx, v.pod, c)
	if err != nil {
		return nil, err
	}
	given.AddTo(cfg)
	if err := w.pinStarting(v.pod, c, cfg); err != nil {
		return nil, err
	}
	return cfg, os.MkdirAll(filepath.Join(w.m.Dirs.PodLogs(v.pod), c.Name), 0o755)
}

// lacks tells whether a container has volumes that are not at one of these places.
func lacks(places volumes.Places, c *corev1.Container) bool {
	return slices.ContainsFunc(volumes.Used(c), func(name string) bool {
		_, has := places[name]
		return !has
	})
}

// fileOf reads files of the volumes at these places.
func fileOf(places volumes.Places) func(volume, path string) ([]byte, error) {
	return func(volume, path string) ([]byte, error) {
		at, ok := places[volume]
		if !ok {
			return nil, fmt.Errorf("cannot find the volume %q", volume)
		}
		return volumes.ReadFile(at.Path, path, podconfig.EnvFileSizeMax)
	}
}

// target is the running container whose processes an ephemeral one wants to see, "" if it names none or it does not run.
func target(v view, name string) string {
	for i := range v.pod.Spec.EphemeralContainers {
		c := &v.pod.Spec.EphemeralContainers[i]
		if c.Name != name || c.TargetContainerName == "" {
			continue
		}
		if run := v.inSandbox(c.TargetContainerName); run != nil && run.Running() {
			return run.Id
		}
	}
	return ""
}

// mounts are the volumes, /etc/hosts and the termination log.
func (w *worker) mounts(
	v view,
	c *corev1.Container,
	attempt int,
	in volumes.MountInput,
	envs []*runtimeapi.KeyValue,
) ([]*runtimeapi.Mount, error) {
	in.Pod, in.Container, in.Env = v.pod, c, map[string]string{}
	for _, kv := range envs {
		in.Env[kv.Key] = string(kv.Value)
	}
	mounts, err := w.m.Volumes.Mounts(in)
	if err != nil {
		return nil, err
	}
	if !mountsAt(c, "/etc/hosts") {
		path, err := w.hostsFile(v)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, &runtimeapi.Mount{ContainerPath: "/etc/hosts", HostPath: path, SelinuxRelabel: true})
	}
	if c.TerminationMessagePath == "" {
		return mounts, nil
	}
	path := w.m.Dirs.TerminationLog(v.pod, c.Name, attempt)
	if err := createWritable(path); err != nil {
		return nil, err
	}
	return append(mounts, &runtimeapi.Mount{ContainerPath: c.TerminationMessagePath, HostPath: path, SelinuxRelabel: true}), nil
}

func mountsAt(c *corev1.Container, path string) bool {
	for i := range c.VolumeMounts {
		if filepath.Clean(c.VolumeMounts[i].MountPath) == path {
			return true
		}
	}
	return false
}

// createWritable makes an empty file any user of the container may write.
func createWritable(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		return err
	}
	return os.Chmod(path, 0o666)
}

// removeOldIncarnations leaves room for one more.
func (w *worker) removeOldIncarnations(ctx context.Context, v view, name string) {
	seen := 0
	for _, c := range v.runtime.Containers {
		if c.ContainerName() != name || c.Running() {
			continue
		}
		if seen++; seen < keepIncarnations {
			continue
		}
		if err := w.m.Runtime.RemoveContainer(ctx, c.Id); err != nil {
			w.logger.Warn("cannot remove an old container", "container", name, "err", err)
			continue
		}
		removeLogs(w.m.Dirs.LogFile(c))
		_ = os.Remove(w.m.Dirs.TerminationLog(v.pod, name, c.RestartCount()))
	}
}

// linkLog lets collectors of logs find a container's, also if it ends before the next look at all of them.
func (w *worker) linkLog(ctx context.Context, id string) {
	if w.m.LogLinks.None() {
		return
	}
	resp, err := w.m.Runtime.ContainerStatus(ctx, id, false)
	if err == nil {
		err = w.m.LogLinks.Add(resp.GetStatus())
	}
	if err != nil && ctx.Err() == nil {
		w.logger.Warn("collectors of logs do not find a container's log yet", "container", id, "err", err)
	}
}

// removeLogs removes a log and what rotation made of it; there may be neither.
func removeLogs(path string) {
	rotated, _ := filepath.Glob(path + ".*") // the pattern is well-formed
	for _, f := range append(rotated, path) {
		_ = os.Remove(f)
	}
}

// terminationMessageMaxBytes and the log limits are upstream's.
const (
	terminationMessageMaxBytes = 4096
	terminationLogMaxBytes     = 2048
	terminationLogMaxLines     = 80
)

// partialTag marks a piece of a line in a log: the next goes on where it ended.
const partialTag = "P"

// terminationMessage is what an incarnation left in its termination log, or,
// if its policy says so, the end of its output.
func terminationMessage(dirs podconfig.Dirs, pod *corev1.Pod, run *observed.Container) string {
	c := findContainer(pod, run.ContainerName())
	if c == nil {
		return ""
	}
	data := readTail(dirs.TerminationLog(pod, c.Name, run.RestartCount()), terminationMessageMaxBytes)
	if len(data) > 0 || c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError || run.ExitCode == 0 {
		return string(data)
	}
	return lastLogLines(readTail(dirs.LogFile(run), 4*terminationLogMaxBytes))
}

func findContainer(pod *corev1.Pod, name string) *corev1.Container {
	for _, c := range (view{pod: pod}).containers() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// readTail reads at most limit bytes from the end of a regular file. The file
// is the container's to write: a link or a device in its place is not followed.
func readTail(path string, limit int64) []byte {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	buf := make([]byte, min(limit, info.Size()))
	n, _ := f.ReadAt(buf, max(0, info.Size()-limit))
	return buf[:n]
}

// lastLogLines strips the CRI prefix of the last lines of a log.
func lastLogLines(data []byte) string {
	lines := strings.SplitAfter(string(data), "\n")
	var out []string
	for _, l := range lines {
		parts := strings.SplitN(l, " ", 4)
		if len(parts) < 4 {
			continue
		}
		if parts[2] == partialTag {
			parts[3] = strings.TrimSuffix(parts[3], "\n")
		}
		out = append(out, parts[3])
	}
	text := strings.Join(out[max(0, len(out)-terminationLogMaxLines):], "")
	return text[max(0, len(text)-terminationLogMaxBytes):]
}

func describe(c *observed.Container) string { return fmt.Sprintf("%s (%s)", c.ContainerName(), c.Id) }
