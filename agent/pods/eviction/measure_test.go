package eviction

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// layer is a runtime with one container, whose writable layer has this size.
type layer uint64

func (l layer) ListContainerStats(_ context.Context, f *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	if f.GetLabelSelector()[observed.LabelPodUID] != "u" {
		return nil, nil
	}
	return []*runtimeapi.ContainerStats{{
		Attributes:    &runtimeapi.ContainerAttributes{Metadata: &runtimeapi.ContainerMetadata{Name: "a"}},
		WritableLayer: &runtimeapi.FilesystemUsage{UsedBytes: &runtimeapi.UInt64Value{Value: uint64(l)}},
	}}, nil
}

func write(t *testing.T, path string, bytes int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, bytes), 0o644); err != nil {
		t.Fatal(err)
	}
}

// near: folders and blocks that are not full add a little.
func near(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got < want || got > want+64<<10 {
		t.Errorf("%s: %d bytes, want about %d", what, got, want)
	}
}

func TestEveryFileOfAPodIsMeasuredOnce(t *testing.T) {
	dirs := podconfig.Dirs{Root: t.TempDir()}
	pod := podOf("1Mi", "", container("a", "1Mi"))
	data := filepath.Join(dirs.Pod(pod), "volumes", "kubernetes.io~empty-dir", "data")
	write(t, filepath.Join(data, "deep", "er", "file"), 3*mi)
	if err := os.Link(filepath.Join(data, "deep", "er", "file"), filepath.Join(data, "again")); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(dirs.Root, "outside")
	write(t, filepath.Join(outside, "large"), 9*mi)
	if err := os.Symlink(outside, filepath.Join(data, "way-out")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dirs.PodLogs(pod), "a", "0.log"), mi)
	write(t, filepath.Join(dirs.PodLogs(pod), "ended", "0.log"), 5*mi)
	use, err := Disk{Runtime: layer(2 * mi), Dirs: dirs}.Measure(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "volume", use.Volumes["data"].Bytes, 3*mi)
	near(t, "container", use.Layers["a"].Bytes+use.Logs["a"].Bytes, 3*mi)
	near(t, "other", use.Other.Bytes, 5*mi)
	near(t, "pod", use.total().Bytes, 11*mi)
}

func TestVolumesInMemoryAreNotMeasured(t *testing.T) {
	dirs := podconfig.Dirs{Root: t.TempDir()}
	pod := podOf("1Mi", "")
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
	}})
	write(t, filepath.Join(dirs.Pod(pod), "volumes", "kubernetes.io~empty-dir", "tmp", "large"), 9*mi)
	use, err := Disk{Runtime: layer(0), Dirs: dirs}.Measure(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := use.Volumes["tmp"]; ok || use.Volumes["data"].Bytes != 0 {
		t.Errorf("a volume in memory, and one that is not there: %v", use.Volumes)
	}
}
