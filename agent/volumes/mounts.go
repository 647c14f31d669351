package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// MountInput is what the mounts of a container depend on.
type MountInput struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	// Places are those that Mount returned.
	Places Places
	// Images are those of image volumes, by the volume's name.
	Images map[string]*runtimeapi.Image
	// Env expands subPathExpr.
	Env map[string]string
}

// Mounts are the volume mounts of a container.
func (m *Manager) Mounts(in MountInput) ([]*runtimeapi.Mount, error) {
	pod, c := in.Pod, in.Container
	var out []*runtimeapi.Mount
	for i := range c.VolumeMounts {
		vm := &c.VolumeMounts[i]
		place, ok := in.Places[vm.Name]
		if !ok {
			return nil, fmt.Errorf("cannot find volume %q to mount into container %q", vm.Name, c.Name)
		}
		sub := vm.SubPath
		if vm.SubPathExpr != "" {
			sub = podconfig.Expand(vm.SubPathExpr, in.Env)
		}
		if image := in.Images[vm.Name]; image != nil {
			out = append(out, imageMount(vm, image, sub))
			continue
		}
		host := place.Path
		if sub != "" {
			pinned, err := m.subPath(pod, c.Name, i, host, sub)
			if err != nil {
				return nil, fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q: %w", vm.Name, c.Name, err)
			}
			host = pinned
		}
		out = append(out, &runtimeapi.Mount{
			ContainerPath: vm.MountPath, HostPath: host,
			Readonly: vm.ReadOnly || readOnlySource(pod, vm.Name), Propagation: propagation(vm.MountPropagation), SelinuxRelabel: place.Relabel,
		})
	}
	return out, nil
}

// imageMount leaves the sub-path to the runtime, which knows where the image's files are.
func imageMount(vm *corev1.VolumeMount, image *runtimeapi.Image, sub string) *runtimeapi.Mount {
	return &runtimeapi.Mount{
		ContainerPath: vm.MountPath, Image: &runtimeapi.ImageSpec{Image: image.Id}, ImageSubPath: sub,
		Readonly: true, Propagation: propagation(vm.MountPropagation),
	}
}

// readOnlySource: content from the API is the agent's to write.
func readOnlySource(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == name {
			return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil ||
				v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly || v.Image != nil ||
				v.CSI != nil && v.CSI.ReadOnly != nil && *v.CSI.ReadOnly
		}
	}
	return false
}

func propagation(p *corev1.MountPropagationMode) runtimeapi.MountPropagation {
	switch {
	case p == nil:
		return runtimeapi.MountPropagation_PROPAGATION_PRIVATE
	case *p == corev1.MountPropagationBidirectional:
		return runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
	case *p == corev1.MountPropagationHostToContainer:
		return runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
	default:
		return runtimeapi.MountPropagation_PROPAGATION_PRIVATE
	}
}

// subPath resolves sub inside the volume and pins what it found with a bind
// mount: the container may replace links in the volume later, but not what was
// opened here. A sub-path that does not exist becomes a directory.
func (m *Manager) subPath(pod *corev1.Pod, container string, index int, volume, sub string) (string, error) {
	if !filepath.IsLocal(sub) {
		return "", fmt.Errorf("subPath %q leads out of the volume", sub)
	}
	f, err := pathOrFolder(volume, sub)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if m.WithoutMounts {
		return filepath.EvalSymlinks(filepath.Join(volume, sub))
	}
	target := filepath.Join(m.Dirs.Pod(pod), "volume-subpaths", container, strconv.Itoa(index))
	return target, bind(f, target)
}

// pathOrFolder returns a handle of what sub is in the volume, made a folder if there is nothing.
func pathOrFolder(volume, sub string) (*os.File, error) {
	f, err := openPath(volume, sub)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	root, err := os.OpenRoot(volume)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := makeFolders(root, sub); err != nil {
		return nil, err
	}
	return openPath(volume, sub)
}

// makeFolders gives what it makes the mode of the volume itself, as a kubelet: who may write there may write here.
func makeFolders(root *os.Root, sub string) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	at := ""
	for part := range strings.SplitSeq(filepath.Clean(sub), string(filepath.Separator)) {
		at = filepath.Join(at, part)
		err := root.Mkdir(at, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := root.Chmod(at, info.Mode()&(fs.ModePerm|fs.ModeSetgid|fs.ModeSticky)); err != nil {
			return err
		}
	}
	return nil
}

// openPath finds a file without opening it: opening a pipe would wait for its writer, opening a device would act on it. Links
// in the volume are followed inside the volume only.
func openPath(volume, sub string) (*os.File, error) {
	root, err := unix.Open(volume, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: volume, Err: err}
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(root, sub, &how)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR): // a rename raced with the walk
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "openat2", Path: sub, Err: err}
		}
		return os.NewFile(uintptr(fd), sub), nil
	}
}

// bind mounts f's own file on target, replacing what an earlier start pinned.
func bind(f *os.File, target string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_ = unix.Unmount(target, unix.MNT_DETACH) // not mounted at the first start
	_ = os.Remove(target)                     // it may have been a file and be a directory now
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o750)
	} else {
		err = os.WriteFile(target, nil, 0o640)
	}
	if err != nil {
		return err
	}
	source := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("pin sub-path: %w", err)
	}
	return nil
}
