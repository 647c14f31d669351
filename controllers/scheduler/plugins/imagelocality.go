package plugins

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
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

// Survey starts counting on how many nodes each image of the pod is.
func (ImageLocality) Survey(pod *plugin.Pod, _ plugin.World) plugin.Survey {
	s := &imageSurvey{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			s.images = append(s.images, withTag(list[i].Image))
		}
	}
	for _, reference := range ImageVolumes(pod.Pod) {
		s.images = append(s.images, withTag(reference))
	}
	s.spread = make([]int64, len(s.images))
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
	images []string
	spread []int64   // on how many nodes images[i] is
	held   [][]int64 // by slot: bytes of images[i] on the node; nil if it has none of them
	nodes  int64
	seen   []bool // by slot: the node is counted in nodes
	total  int64  // sum of spread
}

func (s *imageSurvey) Observe(slot int, node *plugin.Node) {
	for len(s.held) <= slot {
		s.held, s.seen = append(s.held, nil), append(s.seen, false)
	}
	s.count(s.held[slot], -1)
	s.held[slot] = nil
	if s.seen[slot] {
		s.nodes--
	}
	s.seen[slot] = node != nil
	if node == nil {
		return
	}
	s.nodes++
	s.held[slot] = s.imagesOn(node)
	s.count(s.held[slot], 1)
}

func (s *imageSurvey) imagesOn(node *plugin.Node) []int64 {
	if !node.HasImages() {
		return nil
	}
	var held []int64
	for i, name := range s.images {
		if bytes := node.ImageBytes(name); bytes > 0 {
			if held == nil {
				held = make([]int64, len(s.images))
			}
			held[i] = bytes
		}
	}
	return held
}

func (s *imageSurvey) count(held []int64, sign int64) {
	for i, bytes := range held {
		if bytes > 0 {
			s.spread[i] += sign
			s.total += sign
		}
	}
}

func (s *imageSurvey) Filter(*plugin.Node) *plugin.Rejection { return nil }

func (s *imageSurvey) Score(feasible []*plugin.Node, scores []int64) bool {
	if s.total == 0 {
		return false
	}
	most := imageBytesMaxPerContainer * int64(len(s.images))
	for i, node := range feasible {
		var sum int64
		for k, bytes := range s.held[node.Slot] {
			sum += int64(float64(bytes) * float64(s.spread[k]) / float64(s.nodes))
		}
		sum = min(max(sum, imageBytesMin), most)
		scores[i] = plugin.MaxScore * (sum - imageBytesMin) / (most - imageBytesMin)
	}
	return true
}

// withTag completes an image name the way the runtimes report it: without tag and digest it means latest.
func withTag(image string) string {
	if strings.LastIndex(image, ":") <= strings.LastIndex(image, "/") {
		return image + ":latest"
	}
	return image
}
