package podwarnings

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/internal/clip"
)

// pathBytesMax is how much of a path is told.
const pathBytesMax = 512

// placed is a file of a volume, and what it is of, if the volume has several sources.
type placed struct{ path, source string }

func (p placed) String() string {
	path := clip.Text(p.path, pathBytesMax) // one path may stand in each warning
	if p.source == "" {
		return fmt.Sprintf("%q", path)
	}
	return fmt.Sprintf("%q (%s)", path, p.source)
}

// meets reports whether one path is the other, or a folder above it.
func (p placed) meets(other placed) bool {
	if p.path == "" || other.path == "" {
		return false
	}
	return within(p.path, other.path) || within(other.path, p.path)
}

// within reports whether a path is another one, or below it.
func within(path, folder string) bool {
	return strings.HasPrefix(path, folder) && (len(path) == len(folder) || path[len(folder)] == '/')
}

// overlapWarnings find files of a volume that hide each other.
func overlapWarnings(v *corev1.Volume) []string {
	switch {
	case v.ConfigMap != nil:
		return overlaps(v.Name, fmt.Sprintf("ConfigMap %q", v.ConfigMap.Name), ofKeys(v.ConfigMap.Items, ""))
	case v.Secret != nil:
		return overlaps(v.Name, fmt.Sprintf("Secret %q", v.Secret.SecretName), ofKeys(v.Secret.Items, ""))
	case v.DownwardAPI != nil:
		return overlaps(v.Name, "DownwardAPI", ofFields(v.DownwardAPI.Items, ""))
	case v.Projected != nil:
		return projectedWarnings(v)
	}
	return nil
}

func projectedWarnings(v *corev1.Volume) (warnings []string) {
	var files []placed
	for i := range v.Projected.Sources {
		source := &v.Projected.Sources[i]
		if equality.Semantic.DeepEqual(*source, corev1.VolumeProjection{}) {
			warnings = append(warnings, fmt.Sprintf("volume %q (Projected) has no sources provided", v.Name))
		}
		files = append(files, ofSource(source)...)
	}
	return append(warnings, overlaps(v.Name, "Projected", files)...)
}

// overlaps compares each file with the first comparedMax of those before it.
func overlaps(volume, what string, files []placed) (warnings []string) {
	for i := range files {
		files[i].path = strings.TrimRight(files[i].path, "/")
		for _, other := range files[:min(i, comparedMax)] {
			if files[i].meets(other) && len(warnings) < warningsMax {
				warnings = append(warnings, fmt.Sprintf("volume %q (%s): overlapping paths: %s with %s", volume, what, files[i], other))
			}
		}
	}
	return warnings
}

func ofSource(source *corev1.VolumeProjection) []placed {
	switch {
	case source.ConfigMap != nil:
		return ofKeys(source.ConfigMap.Items, fmt.Sprintf("ConfigMap %q", source.ConfigMap.Name))
	case source.Secret != nil:
		return ofKeys(source.Secret.Items, fmt.Sprintf("Secret %q", source.Secret.Name))
	case source.DownwardAPI != nil:
		return ofFields(source.DownwardAPI.Items, "DownwardAPI")
	case source.ServiceAccountToken != nil:
		return []placed{{source.ServiceAccountToken.Path, "ServiceAccountToken"}}
	case source.ClusterTrustBundle != nil:
		bundle := source.ClusterTrustBundle
		name := ptr.Deref(bundle.Name, ptr.Deref(bundle.SignerName, ""))
		return []placed{{bundle.Path, fmt.Sprintf("ClusterTrustBundle %q", name)}}
	case source.PodCertificate != nil:
		certificate := source.PodCertificate
		return []placed{
			{certificate.CertificateChainPath, "PodCertificate chain"}, {certificate.KeyPath, "PodCertificate key"},
			{certificate.CredentialBundlePath, "PodCertificate credential bundle"},
		}
	}
	return nil
}

func ofKeys(items []corev1.KeyToPath, source string) (files []placed) {
	for _, item := range items {
		files = append(files, placed{item.Path, source})
	}
	return files
}

func ofFields(items []corev1.DownwardAPIVolumeFile, source string) (files []placed) {
	for _, item := range items {
		files = append(files, placed{item.Path, source})
	}
	return files
}
