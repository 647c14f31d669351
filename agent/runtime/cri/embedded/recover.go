package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// recover reads back what an earlier process left: running pods are taken over, half-made things removed. A damaged
// record costs its own pod: see abandonSandbox.
func (r *Runtime) recover() error {
	if err := r.recoverSandboxes(); err != nil {
		return err
	}
	if err := r.recoverContainers(); err != nil {
		return err
	}
	if err := r.images.Prune(r.layersInUse()); err != nil {
		r.config.Logger.Warn("prune image layers", "err", err)
	}
	for _, s := range r.allSandboxes() {
		r.resume(s)
	}
	return nil
}

func (r *Runtime) recoverSandboxes() error {
	entries, err := os.ReadDir(r.sandboxesDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		dir := filepath.Join(r.sandboxesDir(), entry.Name())
		var record sandboxRecord
		config := &runtimeapi.PodSandboxConfig{}
		err := readRecord(dir, &record, config, &record.Config)
		if err == nil {
			err = record.check(entry.Name())
		}
		var s *sandbox
		if err == nil {
			s, err = r.assembleSandbox(record, config)
		}
		if err != nil {
			r.abandonSandbox(entry.Name(), err)
			continue
		}
		r.selinux.Hold(record.Labels.Files)
		r.addSandbox(s)
	}
	return nil
}

func (r *Runtime) recoverContainers() error {
	entries, err := os.ReadDir(r.containersDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		dir := filepath.Join(r.containersDir(), entry.Name())
		var record containerRecord
		config := &runtimeapi.ContainerConfig{}
		err := readRecord(dir, &record, config, &record.Config)
		if err == nil {
			err = record.check(entry.Name())
		}
		s := r.sandboxes[record.SandboxID]
		if err == nil && s == nil {
			err = fmt.Errorf("sandbox %s: %w", record.SandboxID, os.ErrNotExist)
		}
		var c *container
		if err == nil {
			c, err = r.assembleContainer(s, record, config)
		}
		if err != nil {
			r.abandonContainer(entry.Name(), err)
			continue
		}
		if c.record.Exit != nil {
			close(c.done)
		}
		r.selinux.Hold(record.FileLabel)
		r.addContainer(c)
	}
	return nil
}

// resume watches a sandbox whose shim lives, and judges one whose shim died while nobody looked. A sandbox that was
// never finished is removed: nobody was told its id.
func (r *Runtime) resume(s *sandbox) {
	if s.record.Endpoint.Address.IsValid() {
		r.network.Adopt(s.record.Endpoint)
	}
	alive := s.shim.Alive(r.ctx)
	switch {
	case alive && s.record.Ready:
		r.background.Go(func() { r.watch(s) })
		return
	case !s.record.Ready && len(r.containersOf(s.id)) == 0 && s.record.ShimPID == 0:
		if alive {
			// Not in the pod's cgroup yet, perhaps: asking is the only way to end it.
			if err := s.shim.Shutdown(r.ctx); err != nil {
				r.config.Logger.Warn("end shim of unfinished sandbox", "sandbox", s.id, "err", err)
			}
		}
		if err := r.destroySandbox(s); err != nil {
			r.config.Logger.Warn("remove unfinished sandbox", "sandbox", s.id, "err", err)
			break
		}
		r.dropSandbox(s.id)
		return
	}
	if err := s.pod.Kill(); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.config.Logger.Warn("kill leftovers of sandbox", "sandbox", s.id, "err", err)
	}
	r.shimGone(s)
}
