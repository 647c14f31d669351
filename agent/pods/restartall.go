package pods

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// restartAll begins the pod anew in its sandbox when a container has ended with a code for which a rule of it says so (KEP-5532): what runs
// is stopped, all containers but ephemeral ones are removed, and the pod starts as it did first. Whose rule it was is removed last, so an
// agent that starts in between goes on. One that keeps ending waits as it would alone, and the others run on.
func (v view) restartAll(s *step) bool {
	sources := v.restartSources()
	if v.runtime.ReadySandbox() == nil || !slices.ContainsFunc(sources, func(c *corev1.Container) bool { return v.due(s, c) }) {
		return false
	}
	s.kind, s.restartsAll = reset, true
	for _, c := range v.permanent() {
		if run := v.inSandbox(c.Name); run != nil && run.Running() {
			s.kill = append(s.kill, victim{container: run, grace: graceMinSeconds, sidecar: v.isSidecar(c.Name), abrupt: true,
				message: fmt.Sprintf("Container %s will be restarted with all others", c.Name)})
		}
	}
	if len(s.kill) > 0 {
		s.kind, s.graceSeconds = kill, graceMinSeconds
	}
	return true
}

// permanent are the containers that are in the pod from its beginning.
func (v view) permanent() []*corev1.Container {
	all := v.containers()
	return all[:len(all)-len(v.pod.Spec.EphemeralContainers)]
}

// restartSources are the containers that have ended so that all restart.
func (v view) restartSources() []*corev1.Container {
	var out []*corev1.Container
	for _, c := range v.permanent() {
		if run := v.inSandbox(c.Name); run != nil && run.Exited() && status.RestartsAll(c, run.ExitCode) {
			out = append(out, c)
		}
	}
	return out
}

// wasRemoved: the container is not there because all restart.
func (v view) wasRemoved(name string) bool {
	c, sandbox := v.removed[name], v.runtime.ReadySandbox()
	return sandbox != nil && (c != nil && c.SandboxID == sandbox.Id || status.RestartingAll(v.pod))
}

// resetContainers removes them, those whose rules it was last.
func (w *worker) resetContainers(ctx context.Context, v view) {
	sources := v.restartSources()
	w.noteRemoved(v)
	for _, c := range v.resetOrder(sources) {
		for _, run := range v.runtime.Containers {
			if run.ContainerName() != c.Name {
				continue
			}
			if err := w.m.Runtime.RemoveContainer(ctx, run.Id); err != nil {
				if ctx.Err() == nil {
					w.logger.Warn("cannot remove a container yet", "container", describe(run), "err", err)
					wait.For(ctx, lookRetry)
				}
				return
			}
		}
		if run := v.inSandbox(c.Name); run != nil {
			w.removeFilesBefore(v, c.Name, run.RestartCount())
		}
	}
	w.countReset(v, sources)
}

// resetOrder is the pod's containers before its init containers, and sources behind all others.
func (v view) resetOrder(sources []*corev1.Container) []*corev1.Container {
	all, inits := v.permanent(), len(v.pod.Spec.InitContainers)
	var targets, last []*corev1.Container
	for _, c := range slices.Concat(all[inits:], all[:inits]) {
		if slices.Contains(sources, c) {
			last = append(last, c)
		} else {
			targets = append(targets, c)
		}
	}
	return append(targets, last...)
}

// noteRemoved keeps how containers ended, which the runtime is about to forget.
func (w *worker) noteRemoved(v view) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range v.permanent() {
		run := v.inSandbox(c.Name)
		if run == nil {
			continue
		}
		if w.notes.stopped[run.Id] {
			run = &observed.Container{ContainerStatus: proto.CloneOf(run.ContainerStatus), SandboxID: run.SandboxID}
			run.Reason, run.Message = status.ReasonRestartingAll, status.MessageRestartingAll
		}
		w.notes.removed[c.Name] = run
	}
}

// countReset lengthens the pauses of those that have ended by themselves; all others begin as new ones.
func (w *worker) countReset(v view, sources []*corev1.Container) {
	w.mu.Lock()
	stopped := maps.Clone(w.notes.stopped)
	clear(w.notes.stopped)
	clear(w.notes.startFailed)
	w.mu.Unlock()
	for _, c := range sources {
		if !stopped[v.inSandbox(c.Name).Id] {
			w.countRestart(v, c.Name)
		}
	}
}

// stoppedWithAll notes that a container does not end by itself.
func (w *worker) stoppedWithAll(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.stopped[id] = true
}

// removeFilesBefore removes logs and messages of incarnations before n, which the runtime does not know any more.
func (w *worker) removeFilesBefore(v view, name string, n int) {
	dir := filepath.Join(w.m.Dirs.PodLogs(v.pod), name)
	entries, _ := os.ReadDir(dir) // there may be none
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), ".")
		if k, err := strconv.Atoi(number); err == nil && k < n {
			removeLogs(filepath.Join(w.m.Dirs.PodLogs(v.pod), podconfig.LogPath(name, k)))
			_ = os.Remove(w.m.Dirs.TerminationLog(v.pod, name, k))
		}
	}
}
