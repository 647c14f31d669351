package eviction

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// Layers is the part of CRI that tells the sizes of writable layers.
type Layers interface {
	ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error)
}

// Disk measures pods: their files below Dirs, and their writable layers by asking Runtime.
type Disk struct {
	Runtime Layers
	Dirs    podconfig.Dirs
}

// Measure walks over all files of a pod. Files that vanish meanwhile are not counted.
func (d Disk) Measure(ctx context.Context, pod *corev1.Pod) (Usage, error) {
	use := Usage{Layers: map[string]Files{}, Logs: map[string]Files{}, Volumes: map[string]Files{}}
	if err := d.layers(ctx, pod, use.Layers); err != nil {
		return use, err
	}
	var err error
	filesIn := func(dir string) Files {
		files, walkErr := filesBelow(ctx, dir)
		err = errors.Join(err, walkErr)
		return files
	}
	use.Other = filesIn(d.Dirs.PodLogs(pod))
	for name := range use.Layers {
		logs := filesIn(filepath.Join(d.Dirs.PodLogs(pod), name))
		use.Logs[name] = logs
		use.Other = Files{max(0, use.Other.Bytes-logs.Bytes), max(0, use.Other.Inodes-logs.Inodes)}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if plugin := localPlugin(v); plugin != "" {
			use.Volumes[v.Name] = filesIn(filepath.Join(d.Dirs.Pod(pod), "volumes", "kubernetes.io~"+plugin, v.Name))
		}
	}
	use.Other.add(filesIn(filepath.Join(d.Dirs.Pod(pod), "containers")))
	return use, err
}

// layers are the writable layers of the containers that run.
func (d Disk) layers(ctx context.Context, pod *corev1.Pod, to map[string]Files) error {
	list, err := d.Runtime.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{
		LabelSelector: map[string]string{observed.LabelPodUID: string(pod.UID)},
	})
	for _, c := range list {
		layer := c.GetWritableLayer()
		files := to[c.GetAttributes().GetMetadata().GetName()]
		files.add(Files{int64(layer.GetUsedBytes().GetValue()), int64(layer.GetInodesUsed().GetValue())})
		to[c.GetAttributes().GetMetadata().GetName()] = files
	}
	return err
}

// localPlugin is the folder of volumes that are on this disk for their pod only.
func localPlugin(v *corev1.Volume) string {
	switch {
	case v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumDefault:
		return "empty-dir"
	case v.ConfigMap != nil:
		return "configmap"
	default:
		return ""
	}
}

// filesBelow counts all files below dir and their blocks, those with several names once. It leaves dir neither by a link, which
// a container may make while it walks, nor into another file system that is mounted there.
func filesBelow(ctx context.Context, dir string) (Files, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Files{}, nil
	}
	if err != nil {
		return Files{}, err
	}
	defer root.Close()
	counted := blocks{names: map[uint64]bool{}}
	err = fs.WalkDir(root.FS(), ".", func(_ string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil // vanished
		}
		return counted.add(entry)
	})
	return counted.files, err
}

// blocks is the sum of one walk.
type blocks struct {
	files  Files
	device uint64
	names  map[uint64]bool // inodes with several names that were counted
}

func (b *blocks) add(entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return nil // vanished
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if b.device == 0 {
		b.device = uint64(stat.Dev)
	}
	if uint64(stat.Dev) != b.device {
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if stat.Nlink > 1 && !entry.IsDir() {
		if b.names[stat.Ino] {
			return nil
		}
		b.names[stat.Ino] = true
	}
	b.files.add(Files{int64(stat.Blocks) * 512, 1})
	return nil
}
