package plugins

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
)

// Below the first threshold pulling is too cheap to matter, above the second (for each container) more bytes do not
// make a node better; both in bytes, upstream's.
const (
	imageBytesMin             int64 = 23 << 20
	imageBytesMaxPerContainer int64 = 1000 << 20
)

// ImageLocality prefers nodes that already hold the pod's images, weighted by how widely an image is spread, so that
// one warm node does not attract everything.
type ImageLocality struct{}

// Name is the plugin's name.
func (ImageLocality) Name() string { return "ImageLocality" }

// Wakes: it never rejects.
func (ImageLocality) Wakes() plugin.Event { return 0 }

// Survey asks on how many nodes each image of the pod is.
func (ImageLocality) Survey(pod *plugin.Pod, world plugin.World) plugin.Survey {
	s := &imageSurvey{views: world.Views}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			s.images = append(s.images, withTag(list[i].Image))
		}
	}
	for _, reference := range ImageVolumes(pod.Pod) {
		s.images = append(s.images, withTag(reference))
	}
	return s
}

// ImageVolumes are the images that the pod mounts.
func ImageVolumes(pod *corev1.Pod) []string {
	var references []string
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].Image; source != nil {
			references = append(references, source.Reference)
		}
	}
	return references
}

type imageSurvey struct {
	views  *views.Views
	images []string
}

// Filters never.
func (s *imageSurvey) Filters() bool { return false }

// Filter lets every node through.
func (s *imageSurvey) Filter(*plugin.Node) *plugin.Rejection { return nil }

// Score weighs the bytes that a node has by how many nodes have them.
func (s *imageSurvey) Score(feasible []*plugin.Node, scores []int64) bool {
	shares, any := make([]float64, len(s.images)), false
	for i, image := range s.images {
		holders := s.views.NodesWith(image)
		shares[i] = float64(holders)
		any = any || holders > 0
	}
	if !any {
		return false
	}
	nodes := float64(s.views.Nodes())
	most := imageBytesMaxPerContainer * int64(len(s.images))
	for i, node := range feasible {
		var sum int64
		if node.HasImages() {
			for k, image := range s.images {
				sum += int64(float64(node.ImageBytes(image)) * shares[k] / nodes)
			}
		}
		sum = min(max(sum, imageBytesMin), most)
		scores[i] = plugin.MaxScore * (sum - imageBytesMin) / (most - imageBytesMin)
	}
	return true
}

// Release has nothing to end.
func (s *imageSurvey) Release() {}

// withTag completes an image name the way the runtimes report it: without tag and digest it means latest.
func withTag(image string) string {
	if strings.LastIndex(image, ":") <= strings.LastIndex(image, "/") {
		return image + ":latest"
	}
	return image
}
